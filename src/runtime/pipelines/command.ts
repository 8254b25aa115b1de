/**
 * The command of a phase, from its gate to its end. The child process exists before anything is written, runs nothing until
 * the gate opens, and has a note under the holds it works under: if this process is killed, the next driver finds it.
 */
import { isUtf8 } from 'node:buffer';
import { lstatSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { once } from 'node:events';
import { pause, whenAborted } from '../../clock.ts';
import { LARGEST_OUTPUTS_BYTES, parseOutputs, type PhaseResult } from '../../core/index.ts';
import {
  beginningOfFile,
  end,
  exitCodeOf,
  type GatedChild,
  ifPossible,
  isGoneWithin,
  isTooLarge,
  NotStarted,
  tooLargeTold,
  WorkingDirectory,
} from '../../host/index.ts';
import type { Children, Entered } from '../processes/children.ts';
import type { HoldTold } from '../holds/held-records.ts';
import type { Hold } from '../holds/hold.ts';
import { clearLeftovers } from '../processes/leftovers.ts';
import { Stop } from './stop.ts';

/** The wait for the end of the output: a process outside the command may keep it open after the command has ended. */
const LAST_WORDS_MS = 500;
const GIVE_UP_MS = 10_000;

export interface CommandTerms {
  readonly children: Children;
  /** The holds it works under: the driver's, and those of the phase. */
  readonly holds: readonly Hold[];
  /** The holds around this process: the command works under these as well. */
  readonly outer: readonly HoldTold[];
  /** The time between TERM and KILL. */
  readonly graceMs: number;
  /** When it aborts, KILL follows at once. */
  readonly hurrying?: AbortSignal | undefined;
  /** Aborts with a `Stop`. */
  readonly stop: AbortSignal;
  readonly output: () => (chunk: Buffer) => void;
  /** Shows a line to people. */
  readonly tell: (line: string) => void;
}

export class PhaseCommand {
  readonly #starting: Promise<GatedChild>;
  readonly #directory: Promise<WorkingDirectory>;
  readonly #cwd: string;
  readonly #shell: string;
  readonly #env: NodeJS.ProcessEnv;

  /** Starts the child process, behind its gate. */
  constructor(shell: string, env: NodeJS.ProcessEnv, mark: string, cwd: string) {
    this.#cwd = cwd;
    this.#shell = shell;
    this.#env = env;
    this.#directory = Promise.resolve().then(() => new WorkingDirectory('phase'));
    this.#starting = this.#directory.then((directory) =>
      directory.start(
        '/bin/sh',
        ['sh', '-c', shell],
        { ...env, SIGNALBOX_OUTPUT: outputsIn(directory) },
        { leads: true, mark, cwd, isCaptured: true },
      ),
    );
    this.#starting.catch(() => undefined);
  }

  /** Ends the child process without opening its gate. */
  async abandon(): Promise<void> {
    const child = await this.#starting.catch(() => undefined);
    await child?.abandon();
    await this.#tidy();
  }

  async run(terms: CommandTerms): Promise<PhaseResult> {
    let child: GatedChild;
    try {
      child = await this.#starting;
    } catch (error) {
      await this.#tidy();
      return { kind: 'failed', why: await this.#whyNotStarted(error) };
    }
    try {
      return await this.#entered(child, terms);
    } finally {
      await child.abandon();
      await this.#tidy();
    }
  }

  /** The system blames the program when the directory does not exist, so this checks the directory. */
  async #whyNotStarted(error: unknown): Promise<string> {
    const isThere = await stat(this.#cwd).then(
      (found) => found.isDirectory(),
      () => false,
    );
    if (!isThere) return `${this.#cwd} is not a directory, so its command cannot run there`;
    if (isTooLarge(error)) return tooLargeTold(this.#env, [this.#shell]);
    return error instanceof NotStarted ? error.message : String(error);
  }

  async #entered(child: GatedChild, terms: CommandTerms): Promise<PhaseResult> {
    const { children, holds, graceMs, stop, tell } = terms;
    const entered = await this.#enter(child, terms);
    if (entered === undefined) return Stop.of(stop).result;
    if (entered.kind === 'lost') return { kind: 'failed', why: `${entered.resource} was lost before it could begin` };
    let isStillThere = false;
    try {
      const [left] = await clearLeftovers(entered, { children, graceMs, tell, cut: stop });
      if (stop.aborted) return Stop.of(stop).result;
      const lost = holds.find((hold) => !hold.isValid);
      if (lost !== undefined) return { kind: 'failed', why: `${lost.resource} was lost before it could begin` };
      if (left !== undefined) return { kind: 'failed', why: `${left}; the command was not started while that runs` };
      const [result, isGone] = await this.#let(child, terms);
      isStillThere = !isGone;
      return result;
    } finally {
      if (!isStillThere) await children.forget(entered.keys).catch(() => undefined);
    }
  }

  /**
   * Tries again while the store does not answer: nothing runs yet. A note that landed without an answer is removed by the
   * process that finds nothing left of the child. Undefined if it was stopped meanwhile.
   */
  #enter(child: GatedChild, { children, holds, outer, graceMs, stop }: CommandTerms): Promise<Entered | undefined> {
    const terms = { graceMs, outlivesHold: false, isAlone: true };
    return children.enterUnless(stop, holds, child.offspring, terms, outer);
  }

  /** The result, and whether all of its processes are gone. */
  async #let(
    child: GatedChild,
    { graceMs, hurrying, stop, output, tell }: CommandTerms,
  ): Promise<[PhaseResult, boolean]> {
    const closed = child.output.map((stream) => {
      stream.on('data', output());
      return once(stream, 'close').catch(() => undefined);
    });
    child.letGo();
    const patience = { graceMs, isOwn: true, giveUpMs: GIVE_UP_MS, ...(hurrying !== undefined && { hurrying }) };
    const first = await Promise.race([child.ended, whenAborted(stop).then(() => 'aborted' as const)]);
    if (first === 'aborted') {
      const isEnded = await end(child.offspring, { ...patience, graceMs: Math.min(graceMs, Stop.of(stop).mostMs) });
      if (!isEnded) tell(`waiting for process ${child.pid}, which cannot be ended`);
    }
    const ended = await child.ended;
    const isGone =
      (await isGoneWithin(child.offspring, true, graceMs, stop)) || (await this.#endRest(child, graceMs, tell));
    await Promise.race([Promise.all(closed), pause(LAST_WORDS_MS)]);
    for (const stream of child.output) stream.destroy();
    if (first === 'aborted') return [Stop.of(stop).result, isGone];
    if (!isGone) return [{ kind: 'failed', why: 'it left processes behind that cannot be ended' }, isGone];
    const code = exitCodeOf(ended);
    if (code !== 0)
      return [{ kind: 'failed', why: 'signal' in ended ? `ended by ${ended.signal}` : `exit code ${code}` }, isGone];
    return [await this.#outputs(), isGone];
  }

  async #endRest(child: GatedChild, graceMs: number, tell: (line: string) => void): Promise<boolean> {
    tell('the command has ended and left processes behind; ending them');
    return end(child.offspring, { graceMs: Math.min(graceMs, 1_000), isOwn: true, giveUpMs: GIVE_UP_MS });
  }

  async #outputs(): Promise<PhaseResult> {
    const file = outputsIn(await this.#directory);
    const text = isAbsent(file) ? Buffer.alloc(0) : beginningOfFile(file, LARGEST_OUTPUTS_BYTES + 1);
    if (text === undefined) return { kind: 'failed', why: 'what it made of $SIGNALBOX_OUTPUT is no file to be read' };
    if (text.length > LARGEST_OUTPUTS_BYTES) {
      return { kind: 'failed', why: `its outputs are larger than ${LARGEST_OUTPUTS_BYTES} bytes` };
    }
    if (!isUtf8(text)) return { kind: 'failed', why: strayBytes(text) };
    const parsed = parseOutputs(text.toString('utf8'));
    return parsed.ok ? { kind: 'succeeded', outputs: parsed.outputs } : { kind: 'failed', why: parsed.problem };
  }

  async #tidy(): Promise<void> {
    const directory = await this.#directory.catch(() => undefined);
    await directory?.remove();
  }
}

/** Outputs are passed on as text: a byte that is not UTF-8 would reach the next phase as another one. */
function strayBytes(outputs: Buffer): string {
  const lines = outputs.toString('latin1').split('\n');
  const at = lines.findIndex((line) => !isUtf8(Buffer.from(line, 'latin1')));
  return `line ${at + 1} of its outputs is not UTF-8; pass such bytes on in a file, or encoded, as base64 does`;
}

/** False if it cannot be looked at: then it is no file to be read. */
function isAbsent(file: string): boolean {
  return ifPossible(() => lstatSync(file, { throwIfNoEntry: false }) === undefined) ?? false;
}

function outputsIn({ path }: WorkingDirectory): string {
  return join(path, 'outputs');
}
