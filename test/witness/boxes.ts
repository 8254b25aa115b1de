/** Boxes over a store whose witness is on, and what their record says. */
import { open, type OpenOptions, type Signalbox } from 'signalbox';
import { afterEach } from 'vitest';
import { Verifier } from '../../src/core/index.ts';
import { sha256 } from '../../src/host/index.ts';
import { prefixed, readRange, type Store } from '../../src/store/index.ts';

const opened: Signalbox[] = [];

afterEach(async () => {
  for (const box of opened.splice(0)) await box.close();
});

/** Closed after the test. */
export async function opening(store: Store, options: OpenOptions = {}): Promise<Signalbox> {
  const box = await open(store, { maintains: false, witness: true, ...options });
  opened.push(box);
  return box;
}

export async function use(box: Signalbox, name: string, times = 1): Promise<void> {
  for (let i = 0; i < times; i++) await (await box.lock(name).acquire()).release();
}

export async function lines(box: Signalbox): Promise<readonly string[]> {
  const all: string[] = [];
  for await (const line of box.witness.export()) all.push(line);
  return all;
}

/** What is wrong with an export; undefined if nothing is. */
export function found(exported: readonly string[], options = {}): string | undefined {
  const verifier = new Verifier({ digest: sha256, ...options });
  for (const line of exported) verifier.line(line);
  const { finding } = verifier.finish();
  return finding && `${finding.kind}: ${finding.why}`;
}

export async function keysOf(store: Store, prefix: string): Promise<readonly string[]> {
  return (await readRange(store, prefixed(prefix))).pairs.map(({ key }) => key);
}
