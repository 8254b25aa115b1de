/** A token as JSON, on the command line and over HTTP: without its secret. */
import { given } from '../core/given.ts';
import type { TokenView } from '../runtime/access/tokens.ts';
import { msOf, time } from './time.ts';

/** Fields are only ever added; docs/cli.md lists them. */
export function tokenJson({ id, name, role, holders, createdAt, expiresAt }: TokenView): object {
  return { id, name, role, holders: holders ?? null, createdAt: time(createdAt), expiresAt: time(expiresAt) };
}

export type TokenJson = Omit<TokenView, 'holders' | 'createdAt' | 'expiresAt'> & {
  readonly holders: readonly string[] | null;
  readonly createdAt: string;
  readonly expiresAt: string | null;
};

/** The token from which `tokenJson` made this. */
export function tokenFrom({ holders, createdAt, expiresAt, ...rest }: TokenJson): TokenView {
  const more = given({ holders: holders ?? undefined, expiresAt: msOf(expiresAt) });
  return { ...rest, createdAt: msOf(createdAt) as number, ...more };
}
