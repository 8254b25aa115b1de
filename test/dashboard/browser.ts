/** One browser for a file of tests, and pages of a server in it. */
import { type Browser, chromium, type Page } from 'playwright-core';
import { existsSync } from 'node:fs';
import { open, type Signalbox } from 'signalbox';
import { listen, type Listening, serverOf, type ServerOptions } from '../../src/server/index.ts';

export const CHROMIUM = '/usr/bin/chromium';
/** Tests that need a browser are left out where there is none; scripts/packages.mjs says so, and CI refuses that. */
export const hasBrowser = existsSync(CHROMIUM) && process.env['WITHOUT_SERVERS'] !== 'true';

export const LOCAL = 'sbx_local_of-the-tests';

/** Nothing is measured here: a busy machine may take its time. */
const PATIENCE_MS = 180_000;

export interface Viewport {
  readonly width: number;
  readonly height: number;
}

export const WIDE: Viewport = { width: 1440, height: 900 };
export const PHONE: Viewport = { width: 390, height: 844 };

export function launch(): Promise<Browser> {
  // Containers and root have no sandbox of their own; what is shown comes from the tests alone.
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'], timeout: PATIENCE_MS });
}

/** A server on a port of this machine. */
export class Site {
  readonly box: Signalbox;
  readonly #listening: Listening;

  private constructor(box: Signalbox, listening: Listening) {
    this.box = box;
    this.#listening = listening;
  }

  static async on(url = 'memory:', allowed: Allowed = {}): Promise<Site> {
    const box = await open(url);
    return new Site(box, await serve(box, allowed));
  }

  get url(): string {
    return this.#listening.url;
  }

  /** Asks as the local administrator. */
  async ask(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: { Authorization: `Bearer ${LOCAL}`, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as Record<string, unknown>;
    if (!response.ok) throw new Error(`${path}: ${JSON.stringify(answer)}`);
    return answer;
  }

  hold(name: string, holder: string, more: object = {}): Promise<Record<string, unknown>> {
    const body = { holder, ttlMs: 600_000, waitMs: 0, ...more };
    return this.ask('POST', `/v1/locks/${encodeURIComponent(name)}/acquire`, body);
  }

  async release(name: string, holder: string, token: unknown): Promise<void> {
    await this.ask('POST', `/v1/locks/${encodeURIComponent(name)}/release`, { holder, token });
  }

  async close(): Promise<void> {
    await this.#listening.close();
    await this.box.close();
  }
}

type Allowed = Pick<ServerOptions, 'github' | 'allowsCommands'>;

async function serve(box: Signalbox, allowed: Allowed): Promise<Listening> {
  const server = serverOf(box, { localToken: LOCAL, ...allowed });
  return listen(server, { port: 0, host: '127.0.0.1' });
}

export interface Visit {
  readonly token?: string;
  readonly path?: string;
  readonly theme?: 'dark' | 'light';
  readonly viewport?: Viewport;
}

/** A page of its own, with what it complained about: a page that works complains about nothing. */
export async function visit(
  browser: Browser,
  site: Pick<Site, 'url'>,
  visited: Visit = {},
): Promise<{ page: Page; complaints: string[] }> {
  const { token = LOCAL, path = '/overview', theme = 'dark', viewport = WIDE } = visited;
  const context = await browser.newContext({ viewport, colorScheme: theme, reducedMotion: 'reduce' });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())));
  page.on('request', (request) => {
    if (!request.url().startsWith(site.url) && !request.url().startsWith('data:')) complaints.push(request.url());
  });
  await page.goto(`${site.url}/#token=${token}&view=${encodeURIComponent(path)}`);
  return { page, complaints };
}
