/** What docs/witness.md shows as an example, made by the code. */
import {
  coveredHead,
  emptyChain,
  entered,
  nextCheckpoint,
  nextEntry,
  type WitnessedCommand,
} from '../../src/core/index.ts';
import { sha256 } from '../../src/host/index.ts';

export function vectors(): Readonly<Record<string, unknown>> {
  const acquire: WitnessedCommand = {
    ...{ actor: 'agent:7', component: 'lock', command: 'acquire', outcome: 'acquired', events: ['lock:acquired'] },
    ...{ trace: 'build-12', waitedMs: 250, detail: { reason: 'dépl😀y "now"', share: 1e-7 } },
  };
  const release = { actor: 'agent:7', component: 'lock', command: 'release', outcome: 'released', events: ['lock:released'] };
  const first = nextEntry(emptyChain('lock/main'), { revision: 41, time: 1760000000000, commands: [acquire] }, sha256);
  const second = nextEntry(first.head, { revision: 43, time: 1760000000500, commands: [release] }, sha256);
  const head = coveredHead(second.head, 1, [first.entry.hash, second.entry.hash], sha256);
  return {
    entries: [first.entry, second.entry],
    checkpoint: nextCheckpoint(undefined, [head], 1760000001000, sha256),
    sensitive: { value: 'secret', entered: entered('secret', sha256, '00112233445566778899aabbccddeeff') },
  };
}
