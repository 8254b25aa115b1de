/** A recorded history, and what may happen to it. */
import { generateKeyPairSync, sign } from 'node:crypto';
import {
  type ChainHead,
  type Checkpoint,
  checkpointLine,
  coveredHead,
  type CoveredHead,
  emptyChain,
  endLine,
  entered,
  entryLine,
  headerLine,
  nextCheckpoint,
  nextEntry,
  type Signer,
  type WitnessedCommand,
  type WitnessEntry,
} from '../../src/core/index.ts';
import { sha256 } from '../../src/host/index.ts';

export interface History {
  readonly chains: ReadonlyMap<string, readonly WitnessEntry[]>;
  readonly heads: readonly ChainHead[];
  readonly checkpoints: readonly Checkpoint[];
}

export interface Recording {
  readonly entries: number;
  readonly resources: number;
  /** A checkpoint after this many entries, and at the end. */
  readonly every?: number;
  readonly sign?: Signer;
  /** Another history with the same shape: what a forger writes. */
  readonly actor?: string;
  /** The first entry that the forger writes anew; all after it follow it. */
  readonly forgedFrom?: number;
}

/** Resources with names that sort differently as UTF-8 and as UTF-16. */
const KINDS = ['lock', 'semaphore', 'task', 'pipeline', 'lock/ﬀ', 'lock/😀', 'member'];

export function record({
  entries,
  resources,
  every = 100,
  sign,
  actor = 'worker',
  forgedFrom = 0,
}: Recording): History {
  const names = Array.from({ length: resources }, (_, i) => `${KINDS[i % KINDS.length]}/${i}`);
  const chains = new Map<string, WitnessEntry[]>(names.map((name) => [name, []]));
  const heads = new Map<string, ChainHead>(names.map((name) => [name, emptyChain(name)]));
  const covered = new Map<string, CoveredHead>();
  const checkpoints: Checkpoint[] = [];
  const cover = (time: number): void => {
    for (const head of heads.values()) {
      if (head.seq === 0) continue;
      const from = (covered.get(head.resource)?.seq ?? 0) + 1;
      const hashes = (chains.get(head.resource) ?? []).slice(from - 1).map(({ hash }) => hash);
      covered.set(head.resource, coveredHead(head, from, hashes, sha256));
    }
    checkpoints.push(nextCheckpoint(checkpoints.at(-1), [...covered.values()], time, sha256, sign));
  };
  for (let i = 0; i < entries; i++) {
    // Some chains are long and some have one entry.
    const name = names[i < resources ? i : (i * i + (i >> 3)) % (resources - 1)] as string;
    const write = {
      revision: i + 1,
      time: 1_700_000_000_000 + i,
      commands: commandsOf(i, i < forgedFrom ? 'worker' : actor),
    };
    const { entry, head } = nextEntry(heads.get(name) ?? emptyChain(name), write, sha256);
    chains.get(name)?.push(entry);
    heads.set(name, head);
    if (every > 0 && (i + 1) % every === 0) cover(write.time);
  }
  if (every > 0 && entries % every !== 0) cover(1_800_000_000_000);
  return { chains, heads: [...heads.values()], checkpoints };
}

function commandsOf(i: number, actor: string): WitnessedCommand[] {
  const payload =
    entered(
      i % 50 === 0 ? 'x'.repeat(2000) : { note: `ﬀ😀 "${i}"\n`, ...(i % 16 === 0 && { share: i / 7 }) },
      sha256,
    ) ?? null;
  const first: WitnessedCommand = {
    actor: `${actor}-${i % 5}`,
    component: 'lock',
    command: i % 2 === 0 ? 'acquire' : 'release',
    outcome: i % 2 === 0 ? 'acquired' : 'released',
    events: [i % 2 === 0 ? 'lock:acquired' : 'lock:released'],
    ...(i % 3 === 0 && { waitedMs: i, trace: `trace-${i}` }),
    ...(i % 4 === 0 && { detail: { payload } }),
  };
  return i % 6 === 0 ? [first, { ...first, actor: 'other', events: [] }] : [first];
}

/** The lines of its export. */
export function exported({ chains, heads, checkpoints }: History): string[] {
  const entries = [...chains.values()].flat();
  const last = checkpoints.at(-1);
  return [
    headerLine({ v: 1, time: 1_800_000_000_000, by: 'signalbox test' }, sha256),
    ...checkpoints.map(checkpointLine),
    ...entries.map(entryLine),
    endLine(
      {
        heads: heads.filter(({ seq }) => seq > 0),
        entries: entries.length,
        checkpoints: checkpoints.length,
        ...(last && { checkpoint: { number: last.number, hash: last.hash } }),
      },
      sha256,
    ),
  ];
}

/** The same after trimming what checkpoint `number` covers, of chains of which `isTrimmed` says so. */
export function trimmed(
  history: History,
  number: number,
  isTrimmed: (resource: string) => boolean = () => true,
): History {
  const covering = history.checkpoints[number - 1]?.heads ?? [];
  const last = new Map(covering.filter(({ resource }) => isTrimmed(resource)).map((head) => [head.resource, head]));
  return {
    chains: new Map([...history.chains].map(([name, chain]) => [name, chain.slice(last.get(name)?.seq ?? 0)])),
    heads: history.heads.map((head) => {
      const { seq, hash } = last.get(head.resource) ?? {};
      return seq === undefined || hash === undefined ? head : { ...head, trimmed: { seq, hash } };
    }),
    checkpoints: history.checkpoints,
  };
}

/** A key, and the same signature every time. */
export function signer(): {
  readonly sign: Signer;
  readonly publicKey: ReturnType<typeof generateKeyPairSync>['publicKey'];
} {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  return {
    sign: (text) => ({
      key: '0123456789abcdef',
      ed25519: sign(null, Buffer.from(text), privateKey).toString('base64'),
    }),
    publicKey,
  };
}
