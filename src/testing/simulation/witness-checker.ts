/**
 * Checks the witness at every revision of the store: every change of a resource has its entry in the same revision, each entry
 * follows the previous one, and no entry comes without its change.
 */
import { entryHash, entryProblem, NO_ENTRY, type WitnessEntry } from '../../core/witness/index.ts';
import { sha256 } from '../../host/index.ts';
import {
  encode,
  ENTRIES,
  entryKey,
  chainPath,
  HEADS,
  RECORDS,
  resourceOfChain,
  resourceOfRecord,
  WITNESS_SETTING,
} from '../../runtime/layout.ts';
import { partOf, taskResource } from '../../runtime/tasks/keys.ts';
import { always, type Changes, type KeyRange, type KeyValue, type Store } from '../../store/index.ts';

interface End {
  readonly seq: number;
  readonly hash: string;
}

const NOTHING: End = { seq: 0, hash: NO_ENTRY };

/** From the keys of tasks, which come first, to the end of the store. */
export const EVERYTHING: KeyRange = { key: '//', end: '\0' };

export class WitnessChecker {
  readonly #ends = new Map<string, End>();
  readonly #fail: (what: string) => never;

  constructor(fail: (what: string) => never) {
    this.#fail = fail;
  }

  stored({ changes }: Pick<Changes, 'changes'>): void {
    const puts = changes.flatMap((change) => (change.kind === 'put' ? [change.pair] : []));
    const entered = new Set(puts.filter(({ key }) => key.startsWith(ENTRIES)).map((pair) => this.#entered(pair)));
    const changed = new Set(puts.flatMap((pair) => resourceIn(pair) ?? []));
    for (const resource of changed) {
      if (!entered.has(resource)) this.#fail(`the witness has no entry for a write of ${resource}`);
    }
    for (const resource of entered) {
      const isRecord = resource.startsWith('lock/') || resource.startsWith('semaphore/');
      if (isRecord && !changed.has(resource)) this.#fail(`the witness has an entry without a write of ${resource}`);
    }
    for (const pair of puts) this.#named(pair);
    // If a whole chain was trimmed and its resource is gone, maintenance drops the chain with its end.
    for (const change of changes)
      if (change.kind === 'delete' && change.key.startsWith(HEADS))
        this.#ends.delete(resourceOfChain(change.key, HEADS));
  }

  #entered(pair: KeyValue): string {
    const entry = pair.value.json as WitnessEntry;
    const problem = entryProblem(entry);
    if (problem !== undefined) this.#fail(`${pair.key}: ${problem}`);
    const { resource, seq, previous, hash } = entry;
    const before = this.#ends.get(resource) ?? NOTHING;
    if (pair.key !== entryKey(chainPath(resource), seq)) this.#fail(`${pair.key} holds entry ${seq} of ${resource}`);
    if (pair.version !== 1) this.#fail(`entry ${seq} of ${resource} was written twice`);
    if (seq !== before.seq + 1) this.#fail(`entry ${seq} of ${resource} comes after entry ${before.seq}`);
    if (previous !== before.hash) this.#fail(`entry ${seq} of ${resource} does not follow entry ${before.seq}`);
    if (entryHash(entry, sha256) !== hash) this.#fail(`entry ${seq} of ${resource} has a wrong hash`);
    this.#ends.set(resource, { seq, hash });
    return resource;
  }

  /** Checks that the key of a chain's end names its last entry. */
  #named(pair: KeyValue): void {
    const { key } = pair;
    const document = pair.value.json as { readonly head?: End } | End;
    const isHead = key.startsWith(HEADS);
    if (!isHead && !key.startsWith(RECORDS)) return;
    const resource = isHead ? resourceOfChain(key, HEADS) : resourceOfRecord(key);
    const said = isHead ? (document as End) : (document as { readonly head?: End }).head;
    const end = this.#ends.get(resource) ?? NOTHING;
    if (said?.seq !== end.seq || said.hash !== end.hash) {
      this.#fail(`${key} names entry ${said?.seq} as the last one of ${resource}, which is ${end.seq}`);
    }
  }
}

/** Switches the witness on before any process looks. */
export async function switchWitnessOn(store: Store): Promise<void> {
  // Loaded now, because loading it later would take real time, in which virtual time goes on: no seed would be repeatable.
  await Promise.all([
    import('../../runtime/witness/observed.ts'),
    import('../../runtime/witness/upkeep.ts'),
    import('../../runtime/witness/proving.ts'),
    import('../../runtime/witness/sealing.ts'),
    import('../../runtime/witness/checkpoints.ts'),
  ]);
  await store.transaction(always([{ do: 'put', key: WITNESS_SETTING, value: encode({ on: true }) }]));
}

/** The resource that a put changes, if the witness enters it. */
function resourceIn({ key }: KeyValue): string | undefined {
  if (key.startsWith(RECORDS)) return resourceOfRecord(key);
  if (key.startsWith('s/pipeline/') || key.startsWith('s/member/')) return resourceOfChain(key, 's/');
  const part = partOf(key);
  return part?.part === 'signalbox' ? taskResource(part.id) : undefined;
}
