/** The witness over HTTP: reads and follows the record, and has the server verify and seal it. */
import type { Checkpoint, InclusionProof, Verification, WitnessEntry } from '../core/index.ts';
import { Failure } from '../failure.ts';
import type { WitnessWarnings } from '../core/troubles.ts';
import type { WitnessFilter } from '../runtime/witness/filter.ts';
import type { OwnEntry, WatchOptions } from '../runtime/witness/log.ts';
import { RemoteEvents } from './events.ts';
import type { Requests } from './requests.ts';

interface EntriesPage {
  readonly entries: readonly WitnessEntry[];
  readonly next: string | null;
  readonly isTrimmed: boolean;
}
type Answered = Verification & { readonly isIntact: boolean; readonly revision: number };

/** The record of every change, at a server. */
export class RemoteWitness {
  readonly #requests: Requests;

  /** @internal */
  constructor(requests: Requests) {
    this.#requests = requests;
  }

  /** Whether the witness of this store is on. */
  async isOn(): Promise<boolean> {
    return (await this.#requests.get<{ isOn: boolean }>('/v1/witness')).isOn;
  }

  /** The warnings of maintenance: a record that fills up, damaged chains. */
  async warnings(): Promise<WitnessWarnings> {
    const { warnings } = await this.#requests.get<{ warnings?: WitnessWarnings }>('/v1/witness');
    return warnings ?? { isFilling: false, damaged: [] };
  }

  /** Reads the matching entries, chain by chain, each chain in order. Throws `compacted` if some were trimmed meanwhile. */
  async *entries(filter: WitnessFilter = {}): AsyncGenerator<WitnessEntry, void> {
    for (let after: string | undefined; ;) {
      const page = await this.#requests.get<EntriesPage>('/v1/witness/entries', { ...filter, after, limit: 1000 });
      if (page.isTrimmed) {
        const what = 'entries of the witness were trimmed while they were read, so some are missing';
        throw new Failure('compacted', `${what}; begin again`);
      }
      yield* page.entries;
      if (page.next === null) return;
      after = page.next;
    }
  }

  /**
   * Follows the matching entries; with `last`, it begins with that many existing ones, without a gap. Reconnects after a lost
   * connection, to any server, and neither misses nor repeats an entry. If entries were trimmed before this reader had them, it
   * calls `onTrimmed`, or throws `compacted` without one. Throws if no server answers at first. Ends when `signal` aborts.
   */
  async *watch(
    filter: WitnessFilter = {},
    options: Omit<WatchOptions, 'keepAlive'> = {},
  ): AsyncGenerator<WitnessEntry, void> {
    const { last, signal, onTrimmed } = options;
    const asked = { ...filter, ...(last !== undefined && { last }) };
    const query = new URLSearchParams(
      Object.entries(asked).map(([name, value]): [string, string] => [name, String(value)]),
    );
    const path = `/v1/witness/watch?${query.toString()}`;
    const sent: AsyncIterable<unknown> = new RemoteEvents(this.#requests, path, { ...(signal && { signal }) });
    for await (const told of sent as AsyncIterable<WitnessEntry | { readonly type: 'resync'; readonly why: string }>) {
      if (!('type' in told)) yield told;
      else if (onTrimmed === undefined) throw new Failure('compacted', told.why);
      else onTrimmed();
    }
  }

  /** Has the server read the whole record; `finding` names the first problem, if there is one. */
  async verify(): Promise<Verification> {
    const asked = { method: 'GET', path: '/v1/witness/verify', waitMs: 60_000 } as const;
    const { isIntact: _, revision: _revision, ...found } = await this.#requests.ask<Answered>(asked);
    return found;
  }

  /** Verifies the record and seals it up to now, for administrators. */
  checkpoint(): Promise<Checkpoint> {
    const path = '/v1/witness/checkpoints';
    return this.#requests.ask({ method: 'POST', path, body: {}, isKeyed: true, waitMs: 60_000 });
  }

  /** The checkpoints of the store, from the oldest to the newest. */
  async checkpoints(): Promise<readonly Checkpoint[]> {
    return (await this.#requests.get<{ checkpoints: readonly Checkpoint[] }>('/v1/witness/checkpoints')).checkpoints;
  }

  /** Proves to a reader who has only a checkpoint that an entry is in the record. */
  proof({ resource, seq }: Pick<WitnessEntry, 'resource' | 'seq'>): Promise<InclusionProof> {
    return this.#requests.get('/v1/witness/proof', { resource, seq });
  }

  /** Adds an entry of your own to the chain of its component. */
  record(own: OwnEntry): Promise<WitnessEntry> {
    return this.#requests.ask({ method: 'POST', path: '/v1/witness/entries', body: own, isKeyed: true });
  }

  /**
   * The lines of an export, as JSON Lines, which any machine can verify without trust in the server. `only`: the entries of these
   * resources alone.
   */
  async *export({ only = [] }: { readonly only?: readonly string[] } = {}): AsyncGenerator<string, void> {
    const broken = (cause: unknown): Failure =>
      new Failure('unavailable', 'the export broke off, or the record was trimmed meanwhile; begin again', { cause });
    const { signal } = this.#requests.closed;
    const query = new URLSearchParams(only.map((resource): [string, string] => ['resource', resource]));
    const { body } = await this.#requests.stream(`/v1/witness/export?${query.toString()}`, {}, signal);
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    const decoder = new TextDecoder();
    let rest = '';
    try {
      for (;;) {
        const { done, value } = await reader.read().catch((error: unknown) => {
          throw broken(error);
        });
        const lines = (rest + decoder.decode(value, { stream: !done })).split('\n');
        rest = lines.pop() as string;
        yield* lines;
        if (done) return;
      }
    } finally {
      await reader.cancel().catch(() => undefined);
    }
  }
}
