/**
 * Refuses requests that another site tricked a browser into sending. Such a site can resolve its own name to this server (DNS
 * rebinding): then the Host is that name. Or its page sends requests across sites: then the Origin is that site.
 */
import { isIP } from 'node:net';
import type { Asked } from './asked.ts';
import { Problem } from './problem.ts';

export interface Gate {
  /** Host names of this server, besides addresses and `localhost`. */
  readonly hosts: readonly string[];
}

export function refuseTricked(asked: Pick<Asked, 'method' | 'path' | 'headers' | 'host'>, { hosts }: Gate): void {
  const { headers, host } = asked;
  const name = nameOf(host);
  // Only a name can be rebound; an address always leads to the same place.
  const isKnown = name !== undefined && (name === 'localhost' || isIP(name) !== 0 || hosts.includes(name));
  const how = 'start it with serve --allow-host NAME to add one';
  if (!isKnown) throw new Problem('wrong-host', `the Host is not one of this server; ${how}`);
  const origin = headers.get('origin');
  const site = headers.get('sec-fetch-site');
  const isOwn = origin === null || origin === `http://${host}` || origin === `https://${host}`;
  if (isOwn && (site !== 'cross-site' || isLinkToPage(asked))) return;
  throw new Problem('foreign-origin', 'this request comes from a page of another site');
}

/** Lets a person follow a link from a chat or an issue to the dashboard: that page is the same for everyone and reveals nothing. */
function isLinkToPage({ method, path, headers }: Pick<Asked, 'method' | 'path' | 'headers'>): boolean {
  return (
    ['GET', 'HEAD'].includes(method) &&
    path === '/' &&
    headers.get('origin') === null &&
    headers.get('sec-fetch-mode') === 'navigate' &&
    headers.get('sec-fetch-dest') === 'document'
  );
}

const LARGEST_PORT = 65_535;

/** `localhost:7077` gives `localhost`, `[::1]:7077` gives `::1`; undefined if the text is not a host. */
function nameOf(host: string): string | undefined {
  const [, six, name, port = '0'] = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/.exec(host) ?? [];
  // No URL has such a port, so no `Request` could be made from it.
  if (Number(port) > LARGEST_PORT) return undefined;
  return (six ?? name)?.toLowerCase();
}

/** Forbids browsers to cache an answer of the API or to show it to another site's page. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
};
