/**
 * `signalbox task work -- CMD`: a standing worker. It waits for tasks and runs the command for each.
 *
 *     claim the next ──▶ run the command ──▶ complete or fail ──▶ claim the next … in each of --jobs lines
 *
 * The first Ctrl-C finishes what runs, the second ends it and gives the tasks back.
 */
import type { Command } from 'commander';
import { pause, systemClock } from '../../clock.ts';
import { lacking, spoken } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { NotStarted } from '../../host/index.ts';
import { NotAcquired } from '../../runtime/refusal.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import type { TaskClaim } from '../../runtime/tasks/claim.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { complain, printable, printJson, printText } from '../output.ts';
import { countArgument } from '../events.ts';
import { NOT_STARTED } from '../run/run.ts';
import { leaveStreamsAlone } from '../run/streams.ts';
import { Voice } from '../run/voice.ts';
import { isJson, withBox } from '../store.ts';
import { addCommandOptions, aroundDashes, type CommandFlags, programOf, workerName } from './command.ts';
import { type JobEnd, type JobTerms, runJob } from './job.ts';
import { outcomeTold } from './run.ts';

interface Flags extends CommandFlags {
  readonly jobs: number;
  readonly exitWhenIdle?: true;
}

/** The pause after an error of the store, before the worker asks it again. */
const TROUBLE_MS = 1_000;
/** How often a worker that is to exit when idle looks whether a task still pauses before its next attempt. */
const IDLE_LOOK_MS = 5_000;

const EXAMPLES = `
Examples:
  signalbox task work -- ./build.sh                          one task after another, until Ctrl-C
  signalbox task work --jobs 4 --capability gpu -- ./train.sh
  signalbox task work --exit-when-idle -- ./build.sh         ends when no task is left that it could do

For each task the command runs as with task run: data on stdin and in $SIGNALBOX_TASK_FILE, exit code 0
completes the task, any other one fails it. Failed tasks are tried again while they have retries
(task publish --retries N --backoff 5s). The first Ctrl-C finishes what runs; the second ends it and
gives the tasks back.

Exit codes: 0 idle, or done after the first Ctrl-C · 130 after the second · 126 not executable · 127 not found`;

export function addTaskWork(command: Command): void {
  addCommandOptions(command.description('run a command for one task after another, until Ctrl-C'))
    .usage('[options] -- COMMAND [ARGUMENT…]')
    .argument('<command...>', 'what to run, with its arguments')
    .option('--jobs <number>', 'how many tasks at once', countArgument, 1)
    .option('--exit-when-idle', 'end when there is no task left that this worker could do')
    .addHelpText('after', EXAMPLES)
    .action(async (words: string[], flags: Flags) => {
      const { ids, command: argv } = aroundDashes(words);
      if (ids.length > 0) throw new CliExit(EXIT.usage, 'write the command after --: signalbox task work -- COMMAND');
      leaveStreamsAlone();
      const program = programOf(command, argv, flags);
      const hurry = new AbortController();
      const options = { sessionTtlMs: flags.ttl, maintains: true };
      await withBox(command, (box, signal) => new Crew(command, box, program, flags, hurry.signal).work(signal), options, hurry).catch(
        (error: unknown) => {
          // Finished after the first Ctrl-C: that is how a standing worker is meant to end.
          if (error instanceof CliExit && error.message === '' && !hurry.signal.aborted) return;
          throw error instanceof NotStarted ? new CliExit(NOT_STARTED, error.message) : error;
        },
      );
    });
}

class Crew {
  readonly #command: Command;
  readonly #box: Signalbox;
  readonly #flags: Flags;
  readonly #holder: string;
  readonly #voice = new Voice('on-a-terminal');
  readonly #terms: JobTerms;
  #running = 0;

  constructor(
    command: Command,
    box: Signalbox,
    program: Omit<JobTerms, 'leads' | 'onOutput' | 'stop'>,
    flags: Flags,
    stop: AbortSignal,
  ) {
    this.#command = command;
    this.#box = box;
    this.#flags = flags;
    this.#holder = workerName('work', flags);
    const onOutput = isJson(command) ? (): void => undefined : printText;
    // In a group of its own: Ctrl-C on a terminal goes to all processes of our group.
    this.#terms = { ...program, leads: true, onOutput, stop };
  }

  /** `closing` aborts when no further task may be claimed. */
  async work(closing: AbortSignal): Promise<void> {
    closing.addEventListener('abort', () => {
      if (this.#running > 0)
        this.#say(`finishing ${this.#running === 1 ? '1 task' : `${this.#running} tasks`}; Ctrl-C again to give up`);
    });
    // One line that fails ends the others too: what it met, they would meet.
    const failed = new AbortController();
    const over = AbortSignal.any([closing, failed.signal]);
    const lines = Array.from({ length: this.#flags.jobs }, () =>
      this.#line(over).catch((error: unknown) => {
        failed.abort();
        throw error;
      }),
    );
    const results = await Promise.allSettled(lines);
    const broken = results.find((result) => result.status === 'rejected');
    if (broken !== undefined) throw broken.reason;
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
        this.#say(`${error.message}; trying again`);
        await pause(TROUBLE_MS, over);
      }
    }
  }

  /** Undefined if there is nothing left to do. */
  async #next(signal: AbortSignal): Promise<TaskClaim | undefined> {
    const options = { holder: this.#holder, capabilities: this.#flags.capability };
    if (this.#flags.exitWhenIdle !== true) return this.#box.tasks.claimNext({ ...options, signal });
    for (;;) {
      const attempt = await this.#box.tasks.tryClaimNext(options);
      if (attempt.kind === 'claimed') return attempt.claim;
      // Its own tasks may fail, and are then tried again.
      if (signal.aborted || (this.#running === 0 && !(await this.#isAnyPausing()))) return undefined;
      try {
        return await this.#box.tasks.claimNext({ ...options, signal, waitMs: IDLE_LOOK_MS });
      } catch (error) {
        if (!(error instanceof NotAcquired) || error.refusal.kind !== 'timed-out') throw error;
      }
    }
  }

  async #isAnyPausing(): Promise<boolean> {
    const pending = await this.#box.tasks.list({ status: 'pending' });
    return pending.some(
      (task) => task.blockedBy.some(({ why }) => why === 'backoff') && lacking(task, this.#flags.capability).length === 0,
    );
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
      if (error.message !== '') this.#say(error.message);
    } finally {
      this.#running -= 1;
    }
  }

  #tell(id: string, attempt: number, { ended, outcome, error }: JobEnd, ms: number): void {
    if (isJson(this.#command)) {
      const { kind = 'lost', ...details } = outcome ?? {};
      printJson({ task: id, outcome: error === undefined ? kind : 'unknown', attempt, ms: Math.round(ms), ...ended, ...details });
    } else if (error === undefined) {
      this.#say(`${outcome === undefined ? `task/${id}: the claim was lost` : outcomeTold(id, outcome)} after ${spoken(ms)}`);
    }
    if (error !== undefined) this.#say(`task/${id}: the command has ended, but that could not be written: ${told(error)}`);
  }

  #say(text: string): void {
    complain(`signalbox: ${printable(text)}`);
  }
}

/** Signals of this process do not reach the commands of a worker. */
const NO_SIGNALS = {
  left: undefined,
  leaving: new AbortController().signal,
  hurrying: new AbortController().signal,
  wasInterrupted: false,
  running: (): void => undefined,
  ending: (): void => undefined,
};

/** The store is away for a while, or this process was asleep: a standing worker goes on after that. */
function isPassing(error: unknown): error is Error {
  if (error instanceof NotAcquired) return error.refusal.kind === 'session-lost' || error.refusal.kind === 'lost';
  return Failure.is(error, 'unavailable') || Failure.is(error, 'outcome-unknown');
}

function told(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
