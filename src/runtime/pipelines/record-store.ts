/**
 * The record of one pipeline, for one who drives it: reads it, has the core decide, and writes what comes of it. A write
 * compares that the record is as it was decided on, and that our session is alive; the core compares our token. So one
 * who was replaced, or is about to be, changes nothing.
 */
import {
  type Effect,
  effectOf,
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
  /** Its answer got lost: the effect is that of the record, and says nothing of what was told last. */
  readonly isFound?: true;
}

export class RecordStore {
  readonly id: string;
  readonly #runtime: Runtime;
  readonly #runbook: Runbook;
  readonly #key: string;
  /** The session of the one who drives it; without one, anybody may write what the core lets pass. */
  readonly #session: string | undefined;
  /** Another one of the same id, started after this one was forgotten, is not ours: it has another runbook. */
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

  /** Somebody else has written it, perhaps. */
  saw(seen: Seen): boolean {
    if (seen.mod <= this.#seen.mod) return false;
    this.#seen = { record: this.#ours(seen.record), mod: seen.mod };
    return true;
  }

  /** Something was missed: asks until there is an answer, or `until` aborts. */
  async read(until: AbortSignal): Promise<void> {
    await unlessStopped(this.#runtime, until, () => this.#read());
  }

  async #read(): Promise<void> {
    const { pairs, revision } = await readRange(this.#runtime.store, { key: this.#key }, this.#runtime.stopped);
    this.#runtime.saw(revision);
    this.#take(pairs[0], revision);
  }

  /**
   * `also`: what is written together with it, if anything is. `until`: gives up when it aborts. A store that cannot be
   * reached is asked again until then; without it, until the time for a request is over.
   */
  async ask(command: Ask, until?: AbortSignal, also: readonly Operation[] = []): Promise<Answered> {
    const whole = { ...command, command: this.#runtime.options.newId() } as PipelineCommand;
    return writeOnce<Seen, Answered>(this.#runtime, {
      // What the watch has told meanwhile may be newer than what was read.
      read: async (isFirst) => {
        if (!isFirst) await this.#read();
        return this.#seen;
      },
      decide: () => this.#decide(whole, also),
      found: ({ record }) => {
        return record !== undefined && isBy(record, whole.command) ? this.#landed(record) : undefined;
      },
      // No fence: the record is compared, so of two attempts that rest on the same one only one lands.
      until: until ?? this.#runtime.giveUpAt(),
    });
  }

  #decide(command: PipelineCommand, also: readonly Operation[]): NextStep<Seen, Answered> {
    const { record } = this.#seen;
    const { state, outcome, effect, events } = pipelineTransition(this.#runbook, record, command, this.#moment());
    if (state === record || state === undefined) {
      this.#runtime.emit(pipelineResource(this.id), events);
      return { kind: 'answer', answer: { outcome, effect, record } };
    }
    return {
      kind: 'write',
      transaction: this.#transaction(state, events, also),
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

  /** As it was at `revision`. What came by the watch meanwhile may be newer: an answer must not undo it. */
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
    throw new Failure('hold-lost', `${pipelineResource(this.id)}: the session of its driver has ended`);
  }

  #moment(): Parameters<typeof pipelineTransition>[3] {
    return { now: this.#runtime.clock.now(), revision: this.#seen.mod, gone: () => false };
  }
}

function isBy({ last, lastDriven }: PipelineRecord, command: string): boolean {
  return last === command || lastDriven === command;
}
