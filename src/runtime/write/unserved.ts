/** Finds out whether a write left requests that can be granted now. The writer then has to serve them: no other process will. */
import type { Request } from '../../core/index.ts';
import type { CachedState } from './cached-state.ts';
import type { Commit } from './commit.ts';
import type { Coordinated, Machine } from './machines.ts';
import type { AnyCommand } from './pending-command.ts';
import type { WriterHost } from './writer-host.ts';

export class Unserved<State extends Coordinated, Command extends AnyCommand, Outcome> {
  readonly #machine: Machine<State, Command, Outcome>;
  readonly #cached: CachedState<State>;
  readonly #host: WriterHost;

  constructor(machine: Machine<State, Command, Outcome>, cached: CachedState<State>, host: WriterHost) {
    this.#machine = machine;
    this.#cached = cached;
    this.#host = host;
  }

  /** After a write that was decided on the record as it is, if `known`. */
  areLeft(batch: readonly { readonly command: AnyCommand }[], commit: Commit, known: boolean): boolean {
    const { snapshot } = this.#cached;
    const mayServeMore = known && !snapshot.complete && snapshot.state.waiting.length === 0;
    // A new `onStale` may let requests past a stale hold, also requests that are not in the cached queue.
    const isConfigured = commit.changesRecord && batch.some(({ command }) => command.kind === 'configure');
    const isOpen = !this.#machine.isClosed(snapshot.state) || (isConfigured && this.#cached.mayBeStale());
    return (mayServeMore && isOpen) || (commit.queueAfter !== undefined && this.#couldServe(snapshot.state));
  }

  /** After a write that changed only tickets, decided on a record that may have been old, and read the record as it is. */
  areLeftBy({ arriving }: Commit): boolean {
    const { state } = this.#cached.snapshot;
    const couldBeServed = (): boolean => this.#couldServe({ ...state, waiting: arriving });
    // The hold for which the request waits may have ended, or changed, since the record on which it was decided.
    if (this.#machine.isClosed(state) && !this.#cached.mayBeStale()) return couldBeServed();
    if (this.#cached.unknownLeases().length > 0) return true;
    // The write removed a dead request: the one behind it, known or not, may be next.
    return arriving.length === 0 || couldBeServed();
  }

  #couldServe(state: State & { readonly waiting: readonly Request[] }): boolean {
    if (state.waiting.length === 0) return false;
    const at = this.#host.moment(this.#host.revision);
    return this.#machine.transition(state, this.#machine.settle, at).state !== state;
  }
}
