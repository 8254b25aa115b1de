// The client has copies of the library's errors, and a program may use both.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Failure, HoldLost, NotAcquired } from 'signalbox';
import { describe, expect, it } from 'vitest';
import { root } from '../house/sources.ts';

interface Errors {
  readonly Failure: typeof Failure;
  readonly HoldLost: typeof HoldLost;
  readonly NotAcquired: typeof NotAcquired;
}

const built = (file: string): Promise<Errors> =>
  import(pathToFileURL(join(root, 'dist', file)).href) as Promise<Errors>;

describe.each(['client/index.js', 'client/node.js'])('the errors of %s', async (file) => {
  const [library, client] = await Promise.all([built('index.js'), built(file)]);

  it.each([
    ['the client', 'the library', client, library],
    ['the library', 'the client', library, client],
  ])('of %s are instances of the classes of %s', (_, __, one, other) => {
    const refused = new one.NotAcquired('lock/main', { kind: 'aborted', reason: 'a test' });
    const lost = new one.HoldLost('lock/main', { why: 'expired' });
    expect([refused, lost].map((error) => error instanceof other.Failure)).toEqual([true, true]);
    expect([refused, lost].map((error) => error instanceof other.NotAcquired)).toEqual([true, false]);
    expect([refused, lost].map((error) => error instanceof other.HoldLost)).toEqual([false, true]);
  });

  it('are no others that have the same code', () => {
    expect(new client.Failure('not-acquired', 'a test')).not.toBeInstanceOf(library.NotAcquired);
    expect(new client.Failure('hold-lost', 'a test')).not.toBeInstanceOf(library.HoldLost);
    expect({ code: 'not-acquired' }).not.toBeInstanceOf(library.NotAcquired);
    expect(undefined).not.toBeInstanceOf(library.NotAcquired);
  });
});
