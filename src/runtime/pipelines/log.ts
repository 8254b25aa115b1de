/** What the command of a phase prints: kept in the store while it runs and after, of long output the beginning and the end. */
import type { Timer } from '../../clock.ts';
import type { Compare, Operation } from '../../store/index.ts';
import { KeptOutput, PrintedText } from '../../host/index.ts';
import { encode } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { send } from '../tasks/sending.ts';
import { logKey, type PipelineKeys } from './keys.ts';

export interface PhaseLog {
  readonly phase: string;
  /** 1 for the first time that the command of this phase was begun. */
  readonly run: number;
  readonly text: string;
  /** So many bytes were left out of the middle. */
  readonly leftOut: number;
}

const HEAD_BYTES = 16_384;
const TAIL_BYTES = 49_152;
/** Nobody reads faster, and every time the whole is written. */
const EVERY_MS = 2_000;
/** Of each phase. */
const RUNS_KEPT = 5;

export class PhaseLogWriter {
  readonly #runtime: Runtime;
  readonly #keys: PipelineKeys;
  readonly #at: { readonly place: number; readonly phase: string; readonly run: number };
  readonly #kept = new KeptOutput(HEAD_BYTES, TAIL_BYTES);
  readonly #tell: (text: string) => void;
  readonly #streams: PrintedText[] = [];
  #timer: Timer | undefined;
  #isNew = false;
  #isClosed = false;
  #writing: Promise<unknown> = Promise.resolve();

  /** `tell`: what is printed, as it comes. */
  constructor(
    runtime: Runtime,
    keys: PipelineKeys,
    at: { readonly place: number; readonly phase: string; readonly run: number },
    tell: (text: string) => void,
  ) {
    this.#runtime = runtime;
    this.#keys = keys;
    this.#at = at;
    this.#tell = tell;
  }

  /** What comes after the end is nobody's. */
  add(text: string): void {
    if (text === '' || this.#isClosed) return;
    this.#kept.add(Buffer.from(text));
    this.#isNew = true;
    this.#tell(text);
    this.#timer ??= this.#runtime.later(EVERY_MS, () => this.#write(), false);
  }

  /** One for each stream: a letter may come in two pieces. */
  stream(): (chunk: Buffer) => void {
    const printed = new PrintedText();
    this.#streams.push(printed);
    return (chunk) => this.add(printed.write(chunk));
  }

  /** Writes the rest. A log that cannot be written is lost, and nothing else with it. */
  async close(): Promise<void> {
    for (const printed of this.#streams) this.add(printed.end());
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#write();
    await this.#writing;
  }

  get #oldestKept(): string {
    const { place, run } = this.#at;
    return logKey(this.#keys, place, run - RUNS_KEPT + 1);
  }

  #write(): void {
    this.#timer = undefined;
    if (!this.#isNew) return;
    this.#isNew = false;
    const { place, phase, run } = this.#at;
    const log: PhaseLog = { phase, run, ...this.#kept.cut };
    // All of the older ones: a run that printed nothing has removed none.
    const older: Operation = { do: 'delete', key: logKey(this.#keys, place, 0), end: this.#oldestKept };
    const put: Operation = { do: 'put', key: logKey(this.#keys, place, run), value: encode(log) };
    const success = run > RUNS_KEPT ? [older, put] : [put];
    // One that was replaced may still write here; not once all of it has been forgotten.
    const compare: Compare[] = [{ key: this.#keys.state, target: 'version', is: '>', than: 0 }];
    this.#writing = this.#writing.then(() =>
      send(this.#runtime, { compare, success, failure: [] }).catch(() => undefined),
    );
  }
}
