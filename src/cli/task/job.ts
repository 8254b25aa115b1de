/**
 * Runs a command for one claimed task, and ends the claim as the command ended.
 *
 *     the data in a file ── child at its gate ── note, leftovers (see `run`) ── let go ── exit 0: complete with its output
 *                                                                                    ├── else: fail
 *                                                                                    └── interrupted: give the task back
 */
import { open, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { RemoteClaim } from '../../client/task-claim.ts';
import { timeLimit } from '../../clock.ts';
import { documentProblem, type Json, LARGEST_DATA_BYTES } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { type Ended, exitCodeOf, KeptOutput, randomHex, type Text, WorkingDirectory } from '../../host/index.ts';
import { processOf } from '../../runtime/layout.ts';
import { childEnvironment, type OuterHolds } from '../../runtime/processes/environment.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import { endPersistently, type EndOutcome, TaskClaim } from '../../runtime/tasks/claim.ts';
import type { RunEnded } from '../run/ended.ts';
import type { OnLost } from '../arguments.ts';
import { anyOf } from '../interrupt.ts';
import { begun } from '../run/run.ts';
import type { Attention } from '../run/supervise.ts';
import type { Voice } from '../run/voice.ts';
import type { Signals } from '../run/signals.ts';

/** Room for a result of this size is left in every engine; of a longer output the beginning and the end are kept. */
const KEPT_BYTES = 128 * 1024;
/** The wait for the end of the output: a process that the command left behind may keep it open. */
const LAST_WORDS_MS = 500;

export interface JobTerms {
  readonly program: Text;
  readonly argv: readonly [Text, ...Text[]];
  readonly env: NodeJS.ProcessEnv;
  readonly url: string;
  /** What the URL said of the witness. */
  readonly witness: boolean | undefined;
  readonly outer: OuterHolds;
  readonly ttlMs: number;
  readonly graceMs: number;
  readonly onLost: OnLost;
  /** Descriptors beyond stderr that the command gets. */
  readonly given: readonly number[];
  /** The command has a process group of its own, so that Ctrl-C reaches this process alone. */
  readonly leads: boolean;
  /** Aborts when the command has to end and the task is given back. */
  readonly stop?: AbortSignal;
  /** Gets what the command prints. */
  readonly onOutput: (chunk: Buffer) => void;
}

export interface JobEnd {
  readonly ended: RunEnded;
  /** Undefined: the claim was lost before. */
  readonly outcome: EndOutcome | undefined;
  /** Why the claim could not be ended although the command has: its end may not be written down. */
  readonly error?: Error;
}

type Attending = Pick<Signals, 'left' | 'leaving' | 'wasInterrupted'> & Attention;

export async function runJob(
  box: Signalbox,
  claim: TaskClaim,
  terms: JobTerms,
  signals: Attending,
  voice: Voice,
): Promise<JobEnd> {
  const directory = new WorkingDirectory('task');
  const file = join(directory.path, 'data.json');
  try {
    await writeFile(file, `${JSON.stringify(claim.data)}\n`, { mode: 0o600 });
    const data = await open(file, 'r');
    try {
      const env = { ...terms.env, SIGNALBOX_TASK_FILE: file };
      return await runWith(box, claim, { ...terms, env }, { stdin: data.fd, directory }, { signals, voice });
    } finally {
      await data.close();
    }
  } finally {
    await directory.remove();
  }
}

async function runWith(
  box: Signalbox,
  claim: TaskClaim,
  terms: JobTerms,
  { stdin, directory }: { readonly stdin: number; readonly directory: WorkingDirectory },
  { signals, voice }: { readonly signals: Attending; readonly voice: Voice },
): Promise<JobEnd> {
  const { program, argv, leads, given, stop } = terms;
  const mark = randomHex(8);
  const gate = { leads, mark, given, stdin };
  const env = environmentOf(claim, terms, mark);
  const child = await directory.start(program, argv, env, gate).catch(async (error: unknown) => {
    await claim.release().catch(() => undefined);
    throw error;
  });
  const output = new Output(child.output[0], terms.onOutput);
  let outcome: EndOutcome | undefined;
  let error: Error | undefined;
  let endedAs: RunEnded | undefined;
  const lost = anyOf(claim.signal, stop);
  const ending = async (ended: Ended): Promise<EndOutcome> => {
    endedAs = ended;
    const isGivenUp = (signals.wasInterrupted || stop?.aborted === true) && exitCodeOf(ended) !== 0;
    const result = isGivenUp ? undefined : await output.result();
    return written(claim, AbortSignal.any([lost, signals.hurrying]), () => {
      if (isGivenUp) return claim.release();
      return exitCodeOf(ended) === 0 ? claim.complete(result) : claim.fail(toldOf(argv[0], ended));
    });
  };
  const { resource, token, holder, claimId: id } = claim;
  // A claim rests on the session of its process.
  const lease = processOf(id);
  const held = {
    ...{ resource, token, holder, lease, id, signal: lost },
    get isValid() {
      return claim.isValid;
    },
    release: async (ended: Ended): Promise<{ readonly kind: string }> => {
      try {
        outcome = await ending(ended);
      } catch (thrown) {
        error = thrown as Error;
        throw thrown;
      }
      if (outcome.kind === 'not-owner') outcome = undefined;
      return { kind: outcome?.kind ?? 'not-owner' };
    },
  };
  try {
    const ended = await begun(box, terms, [held], terms.outer, child, signals, voice, undefined, undefined);
    if ('guard' in ended) throw new TypeError('a task has no guard');
    if (error !== undefined) await givenUp(claim);
    return { ended, outcome, ...(error !== undefined && { error }) };
  } catch (thrown) {
    // The command has run, and the claim was lost or had to be given up meanwhile.
    if (endedAs !== undefined) {
      if (error !== undefined) await givenUp(claim);
      return { ended: endedAs, outcome, ...(error !== undefined && { error }) };
    }
    await claim.release().catch(() => undefined);
    throw thrown;
  }
}

/** Its end could not be written. A claim at a server would be renewed for as long as this process lives; the task is tried again. */
async function givenUp(claim: TaskClaim): Promise<void> {
  if (!(claim instanceof TaskClaim)) await (claim as RemoteClaim).release().catch(() => undefined);
}

/** A claim whose end was not written would stay for as long as the session does, and the task would be done again. */
async function written(claim: TaskClaim, stop: AbortSignal, end: () => Promise<EndOutcome>): Promise<EndOutcome> {
  const persistently = (work: () => Promise<EndOutcome>): Promise<EndOutcome> => {
    if (claim instanceof TaskClaim) return endPersistently(claim, stop, work);
    // Through a server the claim repeats its end itself.
    (claim as unknown as RemoteClaim).hurryAfter(stop);
    return work();
  };
  try {
    return await persistently(end);
  } catch (error) {
    if (!Failure.is(error, 'invalid')) throw error;
    // No repeat would be accepted. A failure counts as an attempt, so the limit of retries still holds.
    return persistently(() => claim.fail(`the store refused how the command ended: ${error.message}`));
  }
}

function environmentOf(claim: TaskClaim, terms: JobTerms, mark: string): NodeJS.ProcessEnv {
  const { resource, token, holder } = claim;
  const held = [{ resource, token, holder, hold: claim.claimId }];
  return {
    ...childEnvironment(terms.env, { url: terms.url, holder, mark, held, outer: terms.outer }),
    SIGNALBOX_TASK: claim.id,
    SIGNALBOX_TASK_ATTEMPT: String(claim.attempt),
  };
}

function toldOf(command: Text, ended: Ended): string {
  return 'signal' in ended
    ? `${String(command)}: ended by ${ended.signal}`
    : `${String(command)}: exit code ${ended.code}`;
}

/** What the command prints: passed on as it comes, and kept for the result. */
class Output {
  readonly #kept = new KeptOutput(KEPT_BYTES / 2, KEPT_BYTES / 2);
  readonly #closed: Promise<unknown>;

  constructor(stream: Readable | undefined, onOutput: (chunk: Buffer) => void) {
    stream?.on('data', (chunk: Buffer) => {
      this.#kept.add(chunk);
      onOutput(chunk);
    });
    this.#closed = stream === undefined ? Promise.resolve() : once(stream, 'close').catch(() => undefined);
  }

  /** The JSON that the command printed, or `{ output }` with the text; undefined if it printed nothing. */
  async result(): Promise<Json | undefined> {
    const limit = timeLimit(LAST_WORDS_MS).signal;
    await Promise.race([this.#closed, once(limit, 'abort')]);
    const text = this.#kept.text.replace(/\n$/, '');
    if (text === '') return undefined;
    const parsed = parsedOf(text);
    // JSON that cannot be stored, such as 1e999, is kept as the text it is.
    const isKept = parsed !== undefined && documentProblem(parsed, 'result', LARGEST_DATA_BYTES) === undefined;
    return isKept ? parsed : { output: text };
  }
}

function parsedOf(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
