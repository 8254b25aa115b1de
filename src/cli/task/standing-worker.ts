/**
 * A standing worker: waits for tasks and runs the command for each.
 *
 *     claim the next ──▶ run the command ──▶ complete or fail ──▶ claim the next … in each of --jobs lines
 *
 * The first Ctrl-C finishes what runs, the second ends it and gives the tasks back.
 */
import type { Command } from '../command.ts';
import { pause, systemClock } from '../../clock.ts';
import { lacking, spoken } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { NotStarted } from '../../host/index.ts';
import { NotAcquired } from '../../runtime/refusal.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import type { TaskClaim } from '../../runtime/tasks/claim.ts';
import type { TaskView } from '../../runtime/tasks/reading.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { plural, printJson, printText, say } from '../output.ts';
import { NOT_STARTED } from '../run/attended.ts';
import { leaveStreamsAlone } from '../run/streams.ts';
import { Voice } from '../run/voice.ts';
import { withBox } from '../store.ts';
import { programOf, workerName } from './command.ts';
import { type JobEnd, type JobTerms, runJob } from './job.ts';
import { isOwnerGone, sessionsOfOwners } from './owner.ts';
import { outcomeTold } from './run-task.ts';
import type { WorkFlags } from './work.ts';

/** The pause after an error of the store, before the worker asks it again. */
const TROUBLE_MS = 1_000;
/** How often a worker that is to exit when idle looks whether a task pauses before its next attempt, or has a dead owner. */
const IDLE_LOOK_MS = 5_000;

export async function workOnTasks(command: Command, argv: readonly string[], flags: WorkFlags): Promise<void> {
  leaveStreamsAlone();
  const program = programOf(command, argv, flags);
  const hurry = new AbortController();
  const stop = new AbortController();
  hurry.signal.addEventListener('abort', () => stop.abort(new Error('interrupted again')));
  const options = { sessionTtlMs: flags.ttl, maintains: true };
  await withBox(
    command,
    (box, signal) => new Crew(command, box, program, flags, stop.signal).work(signal),
    options,
    hurry,
  ).catch((error: unknown) => {
    // Finished after the first Ctrl-C: that is how a standing worker is meant to end.
    if (error instanceof CliExit && error.message === '' && !hurry.signal.aborted) return;
    throw error instanceof NotStarted ? new CliExit(NOT_STARTED, error.message) : error;
  });
}

class Crew {
  readonly #command: Command;
  readonly #box: Signalbox;
  readonly #flags: WorkFlags;
  readonly #holder: string;
  readonly #voice = new Voice('now-and-then');
  readonly #terms: JobTerms;
  #running = 0;
  /** How many tasks other workers had at the last look. */
  #elsewhere = 0;
  /** The tasks whose last attempt here failed for good. */
  readonly #failed = new Set<string>();
  /** The claims of dead workers that this one has told of. */
  readonly #told = new Set<string>();

  constructor(
    command: Command,
    box: Signalbox,
    program: Omit<JobTerms, 'leads' | 'onOutput' | 'stop'>,
    flags: WorkFlags,
    stop: AbortSignal,
  ) {
    this.#command = command;
    this.#box = box;
    this.#flags = flags;
    this.#holder = workerName('work', flags);
    const onOutput = command.isJson ? (): void => undefined : printText;
    // In a group of its own: Ctrl-C on a terminal goes to all processes of our group.
    this.#terms = { ...program, leads: true, onOutput, stop };
  }

  /** `closing` aborts when no further task may be claimed. */
  async work(closing: AbortSignal): Promise<void> {
    closing.addEventListener('abort', () => {
      // A store that is over ends the tasks too.
      if (this.#running > 0 && !Failure.is(closing.reason, 'closed'))
        say(`finishing ${plural(this.#running, 'task')}; Ctrl-C again to give up`);
    });
    // The worker that it killed cannot say so.
    const lost = await this.#box.on('task:failed', (event) => {
      if (event.type !== 'resync' && event.losses !== undefined) say(`${event.resource}: failed: ${event.reason}`);
    });
    // If one line fails, the others end too: they would meet the same error.
    const failed = new AbortController();
    const over = AbortSignal.any([closing, failed.signal]);
    const lines = Array.from({ length: this.#flags.jobs }, () =>
      this.#line(over).catch((error: unknown) => {
        failed.abort();
        throw error;
      }),
    );
    const results = await Promise.allSettled(lines);
    lost.unsubscribe();
    const broken = results.find((result) => result.status === 'rejected');
    if (broken !== undefined) throw broken.reason;
    if (this.#flags.exitWhenIdle === true && !closing.aborted) this.#endIdle();
  }

  #endIdle(): void {
    const others = `${plural(this.#elsewhere, 'task')} ${this.#elsewhere === 1 ? 'is' : 'are'}`;
    if (this.#elsewhere > 0) say(`nothing left to do here; ${others} still running under other workers`);
    const failed = this.#failed.size;
    if (failed > 0) throw new CliExit(EXIT.no, `${plural(failed, 'task')} failed; ${SEE_FAILED}`);
  }

  async #line(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      try {
        const claim = await this.#next(over);
        if (claim === undefined) return;
        await this.#do(claim);
      } catch (error) {
        if (over.aborted && error instanceof NotAcquired) return;
        if (!isPassing(error)) throw error;
        say(`${error.message}; trying again`);
        await pause(TROUBLE_MS, over);
      }
    }
  }

  /** Undefined if there is nothing left to do. */
  async #next(signal: AbortSignal): Promise<TaskClaim | undefined> {
    const options = { holder: this.#holder, capabilities: this.#flags.capability };
    if (this.#flags.exitWhenIdle !== true) return this.#box.tasks.claimNext({ ...options, signal });
    // A task may become free between a refusal and the look; so a look counts only if a refusal follows it.
    for (let isIdle = false; ;) {
      const attempt = await this.#box.tasks.tryClaimNext(options);
      if (attempt.kind === 'claimed') return attempt.claim;
      if (signal.aborted || isIdle) return undefined;
      // Its own tasks may fail, and are then tried again.
      isIdle = this.#running === 0 && !(await this.#isMoreToCome());
      if (isIdle) continue;
      try {
        return await this.#box.tasks.claimNext({ ...options, signal, waitMs: IDLE_LOOK_MS });
      } catch (error) {
        if (!(error instanceof NotAcquired) || error.refusal.kind !== 'timed-out') throw error;
      }
    }
  }

  /** Whether a task that this worker can do pauses before its next attempt, or belongs to a worker that has died. */
  async #isMoreToCome(): Promise<boolean> {
    const fits = (task: TaskView): boolean => lacking(task, this.#flags.capability).length === 0;
    // In this order: a task that its worker gives back between the two is in the second list, or in both.
    const running = await this.#box.tasks.list({ status: 'running' });
    const pending = await this.#box.tasks.list({ status: 'pending' });
    this.#elsewhere = running.length;
    const sessions = await sessionsOfOwners(this.#box, running);
    const gone = running.filter((task) => fits(task) && isOwnerGone(task, sessions));
    for (const task of gone) this.#tellGone(task);
    return gone.length > 0 || pending.some((task) => fits(task) && task.blockedBy.some(({ why }) => why === 'backoff'));
  }

  #tellGone({ id, owner = '', token }: TaskView): void {
    const claim = `${id} ${token}`;
    if (this.#told.has(claim)) return;
    this.#told.add(claim);
    say(`task/${id}: the process of its worker ${owner} is gone; waiting until the claim ends with its lease`);
  }

  async #do(claim: TaskClaim): Promise<void> {
    const since = systemClock.monotonic();
    const { id, attempt } = claim;
    this.#running += 1;
    try {
      const end = await runJob(this.#box, claim, this.#terms, NO_SIGNALS, this.#voice);
      this.#tell(id, attempt, end, systemClock.monotonic() - since);
    } catch (error) {
      // Lost before the command began, or something of an earlier worker still runs: another attempt follows.
      if (!(error instanceof CliExit)) throw error;
      if (error.message !== '') say(error.message);
    } finally {
      this.#running -= 1;
    }
  }

  #tell(id: string, attempt: number, { ended, outcome, error }: JobEnd, ms: number): void {
    if (outcome?.kind === 'failed') this.#failed.add(id);
    else this.#failed.delete(id);
    if (this.#command.isJson) {
      const { kind = 'lost', ...details } = outcome ?? {};
      const { interrupted: _, ...how } = ended;
      const told = { task: id, outcome: error === undefined ? kind : 'unknown', attempt, ms: Math.round(ms) };
      printJson({ ...told, ...how, ...details });
    } else if (error === undefined) {
      const after = ` after ${spoken(ms)}`;
      say(outcome === undefined ? `task/${id}: the claim was lost${after}` : outcomeTold(id, outcome, after));
    }
    if (error !== undefined) say(`task/${id}: the command has ended, but that could not be written: ${error.message}`);
  }
}

const SEE_FAILED = 'to see why: signalbox task list --status failed';

/** Signals of this process do not reach the commands of a worker. */
const NO_SIGNALS = {
  left: undefined,
  leaving: new AbortController().signal,
  hurrying: new AbortController().signal,
  wasInterrupted: false,
  running: (): void => undefined,
  losing: (): void => undefined,
  ending: (): void => undefined,
};

/** The store is away for a while, or this process was asleep: a standing worker goes on after that. */
function isPassing(error: unknown): error is Error {
  if (error instanceof NotAcquired) return error.refusal.kind === 'session-lost' || error.refusal.kind === 'lost';
  return Failure.is(error, 'unavailable') || Failure.is(error, 'outcome-unknown');
}
