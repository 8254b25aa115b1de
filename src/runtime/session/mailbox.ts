/** The mailbox of a session: the key into which other processes write letters. Reads every letter once, in order. */
import type { Revision } from '../../store/index.ts';
import { readRange } from '../../store/operations.ts';
import { decode, mailboxKey } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { readEach } from '../stored.ts';
import { readLetter } from '../write/letters.ts';
import { follow } from './follow.ts';

export class Mailbox {
  readonly #host: Runtime;
  readonly #key: string;
  readonly #over: AbortSignal;
  #readUpTo: Revision = 0;
  /** The history was compacted before all letters up to here were read. */
  #missedUpTo: Revision = 0;
  readonly #awaited = new Set<() => void>();

  /** `over`: the session has ended. */
  constructor(host: Runtime, session: string, over: AbortSignal) {
    this.#host = host;
    this.#key = mailboxKey(session);
    this.#over = over;
    over.addEventListener('abort', () => this.#progress(), { once: true });
  }

  async follow(): Promise<void> {
    const host = this.#host;
    await follow(
      host.store,
      host.clock,
      { key: this.#key },
      {
        changes: ({ changes, revision }) => {
          for (const change of changes) {
            if (change.kind !== 'put') continue;
            const { modRevision } = change.pair;
            host.saw(modRevision);
            for (const letter of readEach([change.pair], (pair) => decode<unknown>(pair))) {
              readLetter(letter, modRevision, host);
            }
          }
          this.#readUpTo = revision;
          this.#progress();
        },
        resync: async () => {
          this.#readUpTo = this.#missedUpTo = await host.missedLetters();
          this.#progress();
          return this.#readUpTo;
        },
      },
      this.#over,
    );
  }

  /**
   * Waits until this process has read every letter that was sent to it until now. False if some of those that were sent after
   * `since` cannot be read any more, or if the session ends first.
   */
  async hasReadAllSince(since: Revision): Promise<boolean> {
    const { store, stopped } = this.#host;
    const { pairs } = await readRange(store, { key: this.#key }, stopped);
    const last = pairs[0]?.modRevision;
    const alive = this.#host.clock.keepAlive?.();
    while (last !== undefined && this.#readUpTo < last && !this.#over.aborted) {
      await new Promise<void>((resolve) => this.#awaited.add(resolve));
    }
    alive?.cancel();
    return last !== undefined && this.#missedUpTo <= since && this.#readUpTo >= last;
  }

  #progress(): void {
    const awaited = [...this.#awaited];
    this.#awaited.clear();
    for (const resolve of awaited) resolve();
  }
}
