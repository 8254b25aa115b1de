/** What is in the hands of this process: holds and re-entries, and how each is told of its loss. */
import type { LossReason, Token } from '../../core/index.ts';
import type { ResourceWriter } from '../write/resource-writer.ts';
import { type LossNotice, processOf } from '../layout.ts';
import type { Coordinated } from '../write/machines.ts';
import { type AnyCommand, type AnyOutcome, outcomeOf } from '../write/pending-command.ts';
import { isResource } from '../session/mailbox.ts';

/** A hold in this process that hangs on its session. */
export interface Held {
  readonly resource: string;
  readonly process: string;
  readonly holder: string;
  readonly token: Token;
  readonly isValid: boolean;
  lose(loss: { readonly why: LossReason; readonly by?: string; readonly reason?: string }): void;
  /** The process gives it up: whoever uses it is told, and it is released. */
  surrender(): Promise<void>;
}

interface Host {
  readonly sender: { readonly id: string };
  readonly isClosed: boolean;
  writerFor(resource: string): ResourceWriter<Coordinated, AnyCommand, AnyOutcome>;
  later(delayMs: number, call: () => void, keepsAlive: boolean): void;
}

const LOOK_AGAIN_MS = 500;
/** So many ids are remembered at most, of those that may still be asked for. */
const MOST_IDS = 10_000;

export class Holdings {
  /** By the id of the request that was granted. */
  readonly holds = new Map<string, Held>();
  /** By the outer hold that they rest on. */
  readonly reentries = new Map<string, Set<Held>>();
  readonly #host: Host;
  readonly #collected = new Set<string>();
  readonly #lostEarly = new Set<string>();

  constructor(host: Host) {
    this.#host = host;
  }

  all(): readonly Held[] {
    return [...this.holds.values(), ...[...this.reentries.values()].flatMap((inner) => [...inner])];
  }

  /** A detached hold was handed to whoever asked: it is not in our hands any more, and not nobody's either. */
  collected(id: string): void {
    remember(this.#collected, id);
  }

  has(id: string): boolean {
    return this.holds.has(id) || this.#collected.has(id);
  }

  /** A loss that was told before the grant itself was: such a grant is none any more. */
  wasLostEarly(id: string, token: Token): boolean {
    return this.#lostEarly.delete(`${id} #${token}`);
  }

  lose({ id, token, ...loss }: LossNotice): void {
    const hold = this.holds.get(id);
    // A request that asked again may have been granted again: the loss of its first grant is then old news.
    if (hold !== undefined && token < hold.token) return;
    if (hold !== undefined) hold.lose(loss);
    else if (processOf(id) === this.#host.sender.id) remember(this.#lostEarly, `${id} #${token}`);
    this.loseReentries(id, loss);
  }

  loseReentries(id: string, loss: Omit<LossNotice, 'id' | 'token'>): void {
    for (const inner of this.reentries.get(id) ?? []) inner.lose(loss);
  }

  /** Some may have been taken from us without our hearing of it. */
  check(): void {
    // Tasks are no resources of a writer, and are followed by themselves.
    const held = [...this.holds.values()].filter(({ resource }) => isResource(resource));
    for (const resource of new Set(held.map((hold) => hold.resource))) this.#check(resource);
  }

  #check(resource: string): void {
    if (this.#host.isClosed) return;
    this.#host.writerFor(resource).look(
      ({ state }) => this.loseAllBut(resource, new Set(state.record.holds.map(({ id }) => id))),
      () => this.#host.later(LOOK_AGAIN_MS, () => this.#check(resource), false),
    );
  }

  /** These are all that there are of this resource. */
  loseAllBut(resource: string, ids: ReadonlySet<string>): void {
    for (const [id, hold] of this.holds) {
      // It may have been granted since that was read; a hold that is asked for by name is looked up anew.
      if (hold.resource === resource && !ids.has(id)) void this.#loseIfGone(resource, id, hold.holder);
    }
  }

  async #loseIfGone(resource: string, id: string, holder: string): Promise<void> {
    const command = { kind: 'heartbeat', holder, id } as AnyCommand;
    const writer = this.#host.writerFor(resource);
    const outcome = await outcomeOf(writer, command, Number.POSITIVE_INFINITY).catch(() => undefined);
    if (outcome !== undefined && outcome.kind !== 'refreshed') this.holds.get(id)?.lose({ why: 'reclaimed' });
  }
}

function remember(ids: Set<string>, id: string): void {
  ids.add(id);
  if (ids.size <= MOST_IDS) return;
  for (const oldest of ids) {
    ids.delete(oldest);
    return;
  }
}
