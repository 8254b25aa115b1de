/** The log of a phase: stores what its command prints, while it runs; of long output the beginning and the end. */
import type { Timer } from '../../clock.ts';
import { type PipelineRecord, shown, isCount } from '../../core/index.ts';
import { type Compare, type KeyValue, type Operation, readRange } from '../../store/index.ts';
import { KeptOutput, PrintedText } from '../../host/index.ts';
import { encode, checked } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { readEach } from '../stored.ts';
import { send } from '../write/write-once.ts';
import { logKey, type PipelineKeys, pipelineKeys } from './keys.ts';
import { readSpool, removeSpool, type Spool, spoolName } from './spool.ts';

/** What the command of a phase printed. */
export interface PhaseLog {
  /** The name of the phase. */
  readonly phase: string;
  /** 1 for the first run of the command of this phase. */
  readonly run: number;
  /** The text. */
  readonly text: string;
  /** The number of bytes left out of the middle. */
  readonly leftOut: number;
  /** The number of bytes printed in all; absent in logs of earlier versions. */
  readonly bytes?: number;
}

export function phaseLogIn(pair: KeyValue): PhaseLog {
  return checked<PhaseLog>(pair, ({ phase, run, text }) => {
    if (typeof phase !== 'string') return `its phase is ${shown(phase)}`;
    if (!isCount(run)) return `its run is ${shown(run)}`;
    return typeof text === 'string' ? undefined : `its text is ${shown(text)}`;
  });
}

const HEAD_BYTES = 16_384;
const TAIL_BYTES = 49_152;
/** The pause between writes: people do not read faster, and each write is of the whole log. */
const EVERY_MS = 2_000;
/** Less than the tail, so that a write never splits it. */
const SPOOLED_BYTES = 16_384;
/** The number of logs kept for each phase. */
const RUNS_KEPT = 5;

export class PhaseLogWriter {
  readonly #runtime: Runtime;
  readonly #keys: PipelineKeys;
  readonly #at: { readonly place: number; readonly phase: string; readonly run: number };
  readonly #kept = new KeptOutput(HEAD_BYTES, TAIL_BYTES);
  readonly #tell: (text: string) => void;
  readonly #spool: Spool | undefined;
  /** The number of bytes that have reached the store. */
  #landed = 0;
  readonly #streams: PrintedText[] = [];
  #timer: Timer | undefined;
  #isNew = false;
  #isClosed = false;
  #writing: Promise<unknown> = Promise.resolve();

  /** `tell`: gets the output as it comes. `spool`: keeps what the store does not have yet. */
  constructor(
    runtime: Runtime,
    keys: PipelineKeys,
    at: { readonly place: number; readonly phase: string; readonly run: number },
    tell: (text: string) => void,
    spool?: Spool,
  ) {
    this.#spool = spool;
    this.#runtime = runtime;
    this.#keys = keys;
    this.#at = at;
    this.#tell = tell;
  }

  /** Output after the end is dropped. `tell`: gets it, if not the one that gets what the command prints. */
  add(text: string, tell = this.#tell): void {
    if (text === '' || this.#isClosed) return;
    const bytes = Buffer.from(text);
    this.#kept.add(bytes);
    // The spool comes first: output that a person has seen must not be lost later.
    this.#spool?.add(bytes, this.#kept.total, () => Buffer.from(this.#kept.text).subarray(-SPOOLED_BYTES));
    this.#isNew = true;
    tell(text);
    this.#timer ??= this.#runtime.later(EVERY_MS, () => this.#write(), false);
  }

  /** A decoder for each stream: a character may come in two pieces. */
  stream(): (chunk: Buffer) => void {
    const printed = new PrintedText();
    this.#streams.push(printed);
    return (chunk) => this.add(printed.write(chunk));
  }

  /** Writes the rest. A log that cannot be written is lost, but the pipeline goes on. */
  async close(): Promise<void> {
    for (const printed of this.#streams) this.add(printed.end());
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#write();
    await this.#writing;
    if (this.#landed === this.#kept.total) this.#spool?.remove();
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
    const { total } = this.#kept;
    const log: PhaseLog = { phase, run, ...this.#kept.cut, bytes: total };
    // Removes all older ones: a run that printed nothing has removed none.
    const older: Operation = { do: 'delete', key: logKey(this.#keys, place, 0), end: this.#oldestKept };
    const put: Operation = { do: 'put', key: logKey(this.#keys, place, run), value: encode(log) };
    const success = run > RUNS_KEPT ? [older, put] : [put];
    // A replaced driver may still write its log, but not once the pipeline was removed.
    const compare: Compare[] = [{ key: this.#keys.state, target: 'version', is: '>', than: 0 }];
    this.#writing = this.#writing.then(() =>
      send(this.#runtime, { compare, success, failure: [] }).then(
        () => void (this.#landed = total),
        () => undefined,
      ),
    );
  }
}

/** The logs of a pipeline, with what a driver on this machine has spooled but not stored: it may have been killed. */
export function withSpooled(
  logs: readonly PhaseLog[],
  spooled: ReturnType<typeof spoolsOf>,
  record: PipelineRecord | undefined,
): readonly PhaseLog[] {
  const places = new Map(record?.phases.map(({ name }, place) => [name, place]));
  const rest = spooled.filter(({ phase, run }) => !logs.some((log) => log.phase === phase && log.run === run));
  const all = [...logs, ...rest.map(({ phase, run }): PhaseLog => ({ phase, run, text: '', leftOut: 0, bytes: 0 }))];
  return all
    .map((log) => {
      const more = spooled.find(({ phase, run }) => log.phase === phase && log.run === run);
      return more === undefined ? log : continued(log, more);
    })
    .filter(({ text }) => text !== '')
    .sort((a, b) => (places.get(a.phase) ?? 0) - (places.get(b.phase) ?? 0) || a.run - b.run);
}

interface Spooled {
  readonly phase: string;
  readonly run: number;
  readonly from: number;
  readonly bytes: Buffer;
}

/** Read before the logs, so that a log written meanwhile has more than the spool, never less. */
export function spoolsOf(record: PipelineRecord | undefined): readonly Spooled[] {
  return (record?.phases ?? []).flatMap(({ name, runs }, place) =>
    lastRuns(runs).flatMap((run) => {
      const found = record === undefined ? undefined : readSpool(spoolName(record, place, run));
      return found === undefined ? [] : [{ phase: name, run, ...found }];
    }),
  );
}

/** Removes all spools of a pipeline. */
export function removeSpools(record: PipelineRecord): void {
  for (const [place, { runs }] of record.phases.entries()) {
    for (const run of lastRuns(runs)) removeSpool(spoolName(record, place, run));
  }
}

/** Stores what an earlier driver on this machine had only spooled, once its command has ended. */
export async function recoverLog(runtime: Runtime, record: PipelineRecord): Promise<void> {
  const place = record.step.phase;
  const { name: phase = '', runs: run = 0 } = record.phases[place] ?? {};
  const found = spoolsOf(record).find((one) => one.phase === phase && one.run === run);
  if (found === undefined) return;
  const keys = pipelineKeys(record.id);
  const key = logKey(keys, place, run);
  const { pairs } = await readRange(runtime.store, { key }, runtime.stopped);
  const [log = { phase, run, text: '', leftOut: 0, bytes: 0 }] = readEach(pairs, phaseLogIn);
  const whole = continued(log, found);
  const compare: Compare[] = [{ key: keys.state, target: 'version', is: '>', than: 0 }];
  if (whole !== log) {
    await send(runtime, { compare, success: [{ do: 'put', key, value: encode(whole) }], failure: [] });
  }
  removeSpool(spoolName(record, place, run));
}

/** Answers the same log if there is nothing to add. */
function continued(log: PhaseLog, { from, bytes: spooled }: Spooled): PhaseLog {
  const has = log.bytes ?? Buffer.byteLength(log.text);
  const rest = from > has ? spooled : spooled.subarray(has - from);
  if (rest.length === 0) return log;
  const more = new KeptOutput(0, TAIL_BYTES);
  more.add(rest);
  const { text, leftOut } = more.cut;
  const missing = Math.max(0, from - has);
  const gap = missing === 0 ? '' : `\n… ${missing} bytes left out …\n`;
  const bytes = has + missing + rest.length;
  return { ...log, text: log.text + gap + text, leftOut: log.leftOut + missing + leftOut, bytes };
}

function lastRuns(runs: number): readonly number[] {
  const first = Math.max(1, runs - RUNS_KEPT + 1);
  return Array.from({ length: Math.max(0, runs - first + 1) }, (_, at) => first + at);
}
