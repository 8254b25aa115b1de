/**
 * Counts how often requests were denied, for the whole fleet. A denied request writes nothing, so each process counts its own
 * and adds them to the store in one write: with the back-stop of its waits, every 30 s, and when it closes.
 *
 *     n/denied   { total, by: { "lock/main": 7, … } }
 *
 * A count is for people and charts. Denials that a process had not written when it died are missing from it. A write without an
 * answer is not repeated, so nothing is counted twice.
 */
import { type Event, isCount, isRecord } from '../../core/index.ts';
import type { KeyValue } from '../../store/index.ts';
import { readRange } from '../../store/index.ts';
import { encode } from '../layout.ts';
import type { RuntimeObserver, Runtime } from '../runtime.ts';

/** How often requests for locks and semaphores were denied since the store was made. */
export interface Denials {
  /** All of them together. */
  readonly total: number;
  /** By resource, such as `lock/main-branch`; the most frequent first. The total includes resources that are not listed. */
  readonly byResource: ReadonlyMap<string, number>;
}

const KEY = 'n/denied';
/** Beyond these, the least frequent are only in the total. */
const MOST_RESOURCES = 1_000;
/** After this many lost races, the write waits for the next round. */
const MOST_RACES = 8;

export class DenialCounts implements RuntimeObserver {
  readonly #runtime: Runtime;
  #own = new Map<string, number>();
  #writing: Promise<void> | undefined;
  /** The largest total that `read` has answered: counts that get lost on the way to the store do not make it smaller. */
  #told = 0;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  localEvents(resource: string, events: readonly Event[]): void {
    const denied = events.filter(({ type }) => type === 'lock:denied' || type === 'semaphore:denied').length;
    if (denied > 0) this.#own.set(resource, (this.#own.get(resource) ?? 0) + denied);
  }

  backstop(): void {
    void this.write();
  }

  /** What the store has, and what this process has still to add. It never shrinks: charts would take that for a new start. */
  async read(): Promise<Denials> {
    const { store, stopped } = this.#runtime;
    for (;;) {
      await this.#writing;
      const own = this.#own;
      const { pairs } = await readRange(store, { key: KEY }, stopped);
      // While they are being written, nobody can tell whether the store has them already.
      if (own !== this.#own) continue;
      const { total, by } = added(countsIn(pairs[0]), own);
      this.#told = Math.max(this.#told, total);
      return { total: this.#told, byResource: by };
    }
  }

  /** Never throws: a count must not get in the way of anything. */
  async write(): Promise<void> {
    await this.#writing;
    if (this.#own.size === 0) return;
    const adding = this.#own;
    this.#own = new Map();
    this.#writing = this.#add(adding);
    await this.#writing;
  }

  async #add(adding: ReadonlyMap<string, number>): Promise<void> {
    const { store, stopped } = this.#runtime;
    try {
      let pair = (await readRange(store, { key: KEY }, stopped)).pairs[0];
      for (let race = 0; race < MOST_RACES; race++) {
        const { total, by } = added(countsIn(pair), adding);
        const { succeeded, results } = await store.transaction(
          {
            compare: [{ key: KEY, target: 'mod', is: '=', than: pair?.modRevision ?? 0 }],
            success: [{ do: 'put', key: KEY, value: encode({ total, by: Object.fromEntries(by) }) }],
            failure: [{ do: 'read', key: KEY }],
          },
          stopped,
        );
        if (succeeded) return;
        const [read] = results;
        pair = read?.do === 'read' ? read.pairs[0] : undefined;
      }
      // Other processes were faster each time.
      for (const [resource, count] of adding) this.#own.set(resource, (this.#own.get(resource) ?? 0) + count);
    } catch {
      // The store is away. What was sent may have been written, so it is not added again.
    }
  }
}

interface Counts {
  readonly total: number;
  readonly by: ReadonlyMap<string, number>;
}

/** What is malformed counts as nothing. */
function countsIn(pair: KeyValue | undefined): Counts {
  const none: Counts = { total: 0, by: new Map() };
  let json: unknown;
  try {
    json = pair?.value.json;
  } catch {
    return none;
  }
  if (!isRecord(json) || !isCount(json['total']) || !isRecord(json['by'])) return none;
  const by = Object.entries(json['by']).filter((entry): entry is [string, number] => isCount(entry[1]));
  return { total: json['total'] as number, by: new Map(by) };
}

function added({ total, by }: Counts, adding: ReadonlyMap<string, number>): Counts {
  const sum = new Map(by);
  let more = 0;
  for (const [resource, count] of adding) {
    sum.set(resource, (sum.get(resource) ?? 0) + count);
    more += count;
  }
  const mostFrequent = [...sum].sort((a, b) => b[1] - a[1]).slice(0, MOST_RESOURCES);
  return { total: total + more, by: new Map(mostFrequent) };
}
