/** Broadcasts the topology while this process holds `lead('topology')`. `core/members/topology.ts` decides when. */
import type { Timer } from '../../clock.ts';
import { whenAborted } from '../../clock.ts';
import {
  type Broadcasts,
  type BroadcastStep,
  newBroadcasts,
  sendingFailed,
  timeIsUp,
  topologyChanged,
  topologyOf,
} from '../../core/index.ts';
import { aFunction, milliseconds, refuseWrongValues } from '../options.ts';
import type { Runtime } from '../runtime.ts';
import { isTrouble } from '../write/recovery.ts';
import { unlessStopped } from '../write/write-once.ts';
import type { MemberFeed } from './feed.ts';
import type { Lead, Term } from './lead.ts';
import { lastTopology, sendTopology } from './topology-key.ts';

/** How to broadcast. */
export interface BroadcastOptions {
  /** The least time between two broadcasts; 1000 unless given. */
  readonly cooldownMs?: number;
  /**
   * Called when the store refuses a topology for good, because it is too large for instance: the next change is sent again. Also
   * called when this process can take no part any more: then `ended` resolves. Without it, the process prints a warning.
   */
  readonly onFailed?: (error: unknown) => void;
}

const COOLDOWN_MS = 1000;

/** The part that this process takes in the broadcast of the topology. */
export class TopologyBroadcast implements AsyncDisposable {
  readonly #runtime: Runtime;
  readonly #feed: MemberFeed;
  readonly #cooldownMs: number;
  readonly #over = new AbortController();
  readonly #onFailed: (error: unknown) => void;
  /** Resolves when this process takes no part any more: it was stopped or closed, or it failed. */
  readonly ended: Promise<void>;
  #isLeading = false;

  /** @internal */
  constructor(runtime: Runtime, feed: MemberFeed, lead: Lead, options: BroadcastOptions) {
    refuseWrongValues(options, { cooldownMs: milliseconds, onFailed: aFunction });
    this.#runtime = runtime;
    this.#feed = feed;
    this.#cooldownMs = options.cooldownMs ?? COOLDOWN_MS;
    this.#onFailed = options.onFailed ?? warn;
    const { signal } = this.#over;
    this.ended = lead('topology', (term) => this.#send(term), { signal }).then(
      () => undefined,
      (error: unknown) => {
        if (!signal.aborted && !runtime.isClosed) this.#report(error);
      },
    );
  }

  /** Whether this process sends the broadcasts now. */
  get isSending(): boolean {
    return this.#isLeading;
  }

  /** Resolves when nothing of it is left; another process sends from then on. */
  async stop(): Promise<void> {
    this.#over.abort();
    await this.ended;
  }

  /** Stops at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** Calls the handler later, so that what it throws disturbs no broadcast. */
  #report(error: unknown): void {
    queueMicrotask(() => this.#onFailed(error));
  }

  /** Sends broadcasts until the signal aborts. */
  async #send({ epoch, signal }: Term): Promise<void> {
    const { clock } = this.#runtime;
    let state: Broadcasts | undefined;
    let timer: Timer | undefined;
    let sending: Promise<void> = Promise.resolve();
    const take = (step: BroadcastStep): void => {
      state = step.state;
      timer?.cancel();
      if (step.wakeAt !== undefined && !signal.aborted) {
        timer = clock.timer(step.wakeAt - clock.monotonic(), () =>
          take(timeIsUp(state as Broadcasts, clock.monotonic())),
        );
      }
      const { send } = step;
      // One after the other, so that a later topology never arrives before an earlier one.
      if (send !== undefined) sending = sending.then(() => write(send));
    };
    const write = async (topology: Parameters<typeof sendTopology>[2]): Promise<void> => {
      try {
        if (!signal.aborted) await sendTopology(this.#runtime, epoch, topology, signal);
      } catch (error) {
        if (signal.aborted) return;
        // The store would refuse it again, so it counts as sent, and the next change gets its turn.
        if (!isTrouble(error)) return this.#report(error);
        take(sendingFailed(state as Broadcasts, topology, clock.monotonic()));
      }
    };
    const changed = (): void => {
      const topology = topologyOf(this.#feed.view);
      // A new sender may still be behind what the one before it has sent.
      const isOld = this.#feed.hasSharedVersions && topology.version < (state?.sent?.version ?? 0);
      if (state !== undefined && !isOld) take(topologyChanged(state, topology, clock.monotonic()));
    };
    const members = await unlessStopped(this.#runtime, signal, () => this.#feed.listen(changed));
    try {
      const before = await unlessStopped(this.#runtime, signal, () => lastTopology(this.#runtime));
      if (members === undefined || signal.aborted) return;
      this.#isLeading = true;
      state = newBroadcasts(this.#cooldownMs, before ?? undefined, clock.monotonic());
      changed();
      await whenAborted(signal);
    } finally {
      this.#isLeading = false;
      members?.unsubscribe();
      timer?.cancel();
      await sending;
    }
  }
}

function warn(error: unknown): void {
  process.emitWarning(
    `signalbox: the topology was not sent: ${error instanceof Error ? error.message : String(error)}`,
  );
}
