/**
 * The record of one pipeline, for its driver: reads it, lets the core decide, and writes the decision. A write compares that
 * the record is the one that was decided on, and that our session is alive; the core compares our token. So a driver that
 * was replaced, or is about to be, changes nothing.
 */
import {
  type Effect,
  effectOf,
  type Event,
  type Json,
  type PipelineCommand,
  type PipelineOutcome,
  type PipelineRecord,
  pipelineTransition,
  type Runbook,
} from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import {
  type Compare,
  type Operation,
  type OperationResult,
  pairIn,
  readRange,
  type ReadResult,
  type Revision,
  type Transaction,
} from '../../store/index.ts';
import { anchorKey, encode } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { said } from '../write/witnessed.ts';
import type { Deed } from '../write/witnessed-commit.ts';
import { type NextStep, unlessStopped, writeOnce } from '../write/write-once.ts';
import { recordIn, type Seen } from './feed.ts';
import { pipelineKeys, pipelineResource } from './keys.ts';

/** A command without its id. */
export type Ask = PipelineCommand extends infer Each
  ? Each extends PipelineCommand
    ? Omit<Each, 'command'>
    : never
  : never;

export interface Answered {
  readonly outcome: PipelineOutcome;
  readonly effect: Effect;
  readonly record: PipelineRecord | undefined;
  /** The answer to the write got lost: the effect is that of the record, whether or not the last command made it. */
  readonly isFound?: true;
}

export class RecordStore {
  readonly id: string;
  readonly #runtime: Runtime;
  readonly #runbook: Runbook;
  readonly #key: string;
  /** The session of the driver. Without it, any process may write what the core allows. */
  readonly #session: string | undefined;
  /** Tells this pipeline from a later one of the same id, started after this one was removed: it has another runbook. */
  readonly #startedAt: number | undefined;
  #seen: Seen;

  constructor(runtime: Runtime, id: string, runbook: Runbook, seen: Seen, session?: string) {
    this.#runtime = runtime;
    this.id = id;
    this.#runbook = runbook;
    this.#key = pipelineKeys(id).state;
    this.#startedAt = seen.record?.startedAt;
    this.#seen = seen;
    this.#session = session;
  }

  get record(): PipelineRecord | undefined {
    return this.#seen.record;
  }

  /** Takes up a record from the watch; answers whether another process wrote it. */
  saw(seen: Seen): boolean {
    if (seen.mod <= this.#seen.mod) return false;
    this.#seen = { record: this.#ours(seen.record), mod: seen.mod };
    return true;
  }

  /** Reads the record after missed changes, until the store answers or `until` aborts. */
  async read(until: AbortSignal): Promise<void> {
    await unlessStopped(this.#runtime, until, () => this.#read());
  }

  async #read(): Promise<void> {
    const { pairs, revision } = await readRange(this.#runtime.store, { key: this.#key }, this.#runtime.stopped);
    this.#runtime.saw(revision);
    this.#take(pairs[0], revision);
  }

  /**
   * Lets the core decide on a command, and writes the decision. `also`: operations of the same write. `until`: gives up when
   * it aborts; until then, or without it for the time of a request, it tries again while the store does not answer.
   */
  async ask(command: Ask, until?: AbortSignal, also: readonly Operation[] = []): Promise<Answered> {
    const whole = { ...command, command: this.#runtime.options.newId() } as PipelineCommand;
    return writeOnce<Seen, Answered>(this.#runtime, {
      // The watch may have delivered a newer record than the one that was read.
      read: async (isFirst) => {
        if (!isFirst) await this.#read();
        return this.#seen;
      },
      decide: () => this.#decide(whole, also),
      found: ({ record }) => {
        const isOurs = record?.last === whole.command || record?.lastDriven === whole.command;
        return record !== undefined && isOurs ? this.#landed(record) : undefined;
      },
      // Needs no fence: the write compares the record, so of two attempts on the same record only one lands.
      until: until ?? this.#runtime.giveUpAt(),
    });
  }

  #decide(command: PipelineCommand, also: readonly Operation[]): NextStep<Seen, Answered> {
    const { record } = this.#seen;
    const at = { now: this.#runtime.clock.now(), revision: this.#seen.mod, gone: () => false };
    const { state, outcome, effect, events } = pipelineTransition(this.#runbook, record, command, at);
    if (state === record || state === undefined) {
      this.#runtime.emit(pipelineResource(this.id), events);
      return { kind: 'answer', answer: { outcome, effect, record } };
    }
    return {
      kind: 'write',
      transaction: this.#transaction(state, events, also),
      deeds: [deedOf(command, record, state, outcome, events)],
      landed: ({ revision }) => {
        this.saw({ record: state, mod: revision });
        return { outcome, effect, record: state };
      },
      overtaken: ({ results, revision }) => {
        this.#take(pairIn(results, this.#key), revision);
        this.#refuseIfGone(results);
        return this.#seen;
      },
    };
  }

  #landed(record: PipelineRecord): Answered {
    const kind = record.cancel !== undefined && record.step.when === 'during' ? 'cancelling' : 'ok';
    return { outcome: { kind }, effect: effectOf(this.#runbook, record), record, isFound: true };
  }

  #transaction(record: PipelineRecord, events: readonly unknown[], also: readonly Operation[]): Transaction {
    const compare: Compare[] = [{ key: this.#key, target: 'mod', is: '=', than: this.#seen.mod }];
    const failure: Operation[] = [{ do: 'read', key: this.#key }];
    if (this.#session !== undefined) {
      compare.push({ key: anchorKey(this.#session), target: 'version', is: '>', than: 0 });
      failure.push({ do: 'read', key: anchorKey(this.#session) });
    }
    return { compare, success: [{ do: 'put', key: this.#key, value: encode({ record, events }) }, ...also], failure };
  }

  /** Takes up the record at `revision`. The watch may have delivered a newer one, which an answer must not undo. */
  #take(pair: ReadResult['pairs'][number] | undefined, revision: Revision): void {
    if (revision < this.#seen.mod) return;
    this.#seen =
      pair === undefined
        ? { record: undefined, mod: 0 }
        : { record: this.#ours(recordIn(pair)), mod: pair.modRevision };
  }

  #ours(record: PipelineRecord | undefined): PipelineRecord | undefined {
    return this.#startedAt === undefined || record?.startedAt === this.#startedAt ? record : undefined;
  }

  #refuseIfGone(results: readonly OperationResult[]): void {
    if (this.#session === undefined || pairIn(results, anchorKey(this.#session)) !== undefined) return;
    throw new Failure(
      'hold-lost',
      `${pipelineResource(this.id)}: the session of its driver has ended, so this process may not write to it; resume it`,
    );
  }
}

/**
 * What the witness enters of a command. A command of the driver names no actor: the record names the driver, or the record
 * before it does, if the command has ended the pipeline, which has no driver from then on.
 */
function deedOf(
  command: PipelineCommand & { readonly by?: string; readonly holder?: string; readonly reason?: string },
  before: PipelineRecord | undefined,
  record: PipelineRecord,
  outcome: PipelineOutcome,
  events: readonly Event[],
): Deed {
  const { kind, by, holder, reason } = command;
  const { when, phase, attempt } = record.step;
  const detail: { [name: string]: Json } = { state: record.state, phase, when, attempt };
  said(detail, reason === undefined ? {} : { reason });
  return {
    resource: pipelineResource(record.id),
    actor: by ?? holder ?? record.driver?.holder ?? before?.driver?.holder ?? record.startedBy,
    command: kind,
    outcome: outcome.kind,
    events: events.map(({ type }) => type),
    detail,
  };
}
