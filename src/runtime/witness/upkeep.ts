/**
 * Maintains the record of the witness: seals it when it is time, warns when it fills up, trims it when it is full, and names
 * chains that do not verify.
 */
import type { Checkpoint, Finding } from '../../core/witness/index.ts';
import { Failure } from '../../failure.ts';
import { readRange } from '../../store/index.ts';
import { ifUnchanged } from '../../store/operations.ts';
import { anchorKey, encode, RECORD_KEEPER } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { takeRole } from '../session/leases.ts';
import { send } from '../write/write-once.ts';
import { readHeads } from './chains.ts';
import { readCheckpoint, readSealed, type Sealed } from './checkpoints.ts';
import { exportLines } from './proving.ts';
import { type RecordKeeping, retentionOf, trim, type WitnessRetention } from './retention.ts';
import { checkpoint } from './sealing.ts';
import { sizeOf, WARNED_AT, type WitnessSize } from './size.ts';
import { type KeepingFailure, readTold, type Told, WARNINGS_KEY } from './warnings.ts';

/** Does one round. A process that signs, anchors or archives takes this over from the maintainer. */
export async function maintainRecord(runtime: Runtime, keeping?: RecordKeeping): Promise<void> {
  if (keeping !== undefined) await runtime.ready();
  if (keeping === undefined ? await hasKeeper(runtime) : !(await takeRole(runtime, RECORD_KEEPER))) return;
  const limits = await retentionOf(runtime);
  const size = await sizeOf(runtime, limits);
  if (size.filled < 1) await calm(runtime, size);
  if (size.entries === 0) return;
  try {
    if (size.filled >= 1 && !(await isTooSoon(runtime))) return await empty(runtime, size.entries, keeping);
    if (await isDue(runtime, limits, keeping)) await seal(runtime, keeping);
    if (size.filled >= WARNED_AT) await warn(runtime, size);
  } catch (error) {
    if (!Failure.is(error, 'corrupt') && !Failure.is(error, 'inconsistent')) throw error;
    await announceDamage(runtime, { kind: 'changed', why: error.message });
  }
}

async function hasKeeper({ store, stopped }: Runtime): Promise<boolean> {
  const { count } = await readRange(store, { key: anchorKey(RECORD_KEEPER), countOnly: true }, stopped);
  return count > 0;
}

async function isDue(runtime: Runtime, { checkpointMs }: WitnessRetention, keeping?: RecordKeeping): Promise<boolean> {
  const newest = await readSealed(runtime);
  if (checkpointMs === 0 || runtime.clock.now() - newest.time < checkpointMs) return false;
  // A record that has not grown is already sealed, unless its checkpoint lacks a signature that this process can add.
  return (keeping?.sign !== undefined && !newest.isSigned) || (await hasGrown(runtime, newest));
}

async function hasGrown(runtime: Runtime, { number }: Sealed): Promise<boolean> {
  const { heads = [] } = number === 0 ? {} : ((await readCheckpoint(runtime, number)) ?? {});
  const covered = new Map(heads.map(({ resource, seq }) => [resource, seq]));
  for (const [resource, { seq }] of await readHeads(runtime)) if (seq !== covered.get(resource)) return true;
  return false;
}

async function seal(runtime: Runtime, { sign, anchor }: RecordKeeping = {}): Promise<Checkpoint> {
  const damaged: Finding[] = [];
  const made = await checkpoint(runtime, { sign, skip: (finding) => damaged.push(finding) });
  for (const finding of damaged) await announceDamage(runtime, finding);
  await keep(runtime, 'anchor', made, anchor?.(made));
  return made;
}

async function empty(runtime: Runtime, entries: number, keeping?: RecordKeeping): Promise<void> {
  const made = await seal(runtime, keeping);
  await keep(runtime, 'archive', made, keeping?.archive?.(exportLines(runtime, { by: 'signalbox' }), made));
  const trimmed = await trim(runtime, made.number);
  if (trimmed === 0) return await noteFailure(runtime, 'trim', CANNOT_TRIM, made);
  const event = { type: 'witness:trimmed', trimmed, entries: entries - trimmed, checkpoint: made.number } as const;
  await tell(runtime, (told) => ({ now: { filling: false, failed: unlessOf('trim', told) }, event }));
}

const CANNOT_TRIM =
  'the record is full, and none of its entries could be trimmed; signalbox witness verify names the chains that are damaged';

/** Clears warnings that no longer apply: a person may have trimmed the record, or raised the limit. */
async function calm(runtime: Runtime, { filled }: WitnessSize): Promise<void> {
  await tell(runtime, (told) => {
    const isCalm = told.filling === true && filled < WARNED_AT;
    if (!isCalm && told.failed?.step !== 'trim') return undefined;
    return { now: { filling: told.filling === true && !isCalm, failed: unlessOf('trim', told) } };
  });
}

function unlessOf(step: KeepingFailure['step'], { failed }: Told): KeepingFailure | undefined {
  return failed?.step === step ? undefined : failed;
}

/** The first pause after a failure; each further pause is twice as long, up to the longest. */
const FIRST_PAUSE_MS = 60_000;
const LONGEST_PAUSE_MS = 3_600_000;

/** Pauses between attempts to trim, because each begins with a checkpoint and a full disk would cost one in every round. */
async function isTooSoon(runtime: Runtime): Promise<boolean> {
  const { failed } = (await readTold(runtime)).told;
  // Another process may write to another disk.
  if (failed === undefined || failed.by !== runtime.sender.id) return false;
  const passed = runtime.clock.now() - failed.at;
  return passed >= 0 && passed < Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failed.times - 1));
}

/** Records a failure, and clears it once the step works again or this process no longer has to do it. */
async function keep(
  runtime: Runtime,
  step: KeepingFailure['step'],
  made: Checkpoint,
  work: Promise<void> | undefined,
): Promise<void> {
  try {
    await work;
  } catch (error) {
    await noteFailure(runtime, step, (error as Error).message, made);
    throw error;
  }
  await tell(runtime, ({ failed }) => (failed?.step === step ? { now: { failed: undefined } } : undefined));
}

async function noteFailure(
  runtime: Runtime,
  step: KeepingFailure['step'],
  why: string,
  { number }: Checkpoint,
): Promise<void> {
  await tell(runtime, ({ failed }) => {
    const times = failed?.step === step ? failed.times + 1 : 1;
    const now = { failed: { step, why, times, at: runtime.clock.now(), by: runtime.sender.id } };
    return times > 1 ? { now } : { now, event: { type: 'witness:failed', step, why, checkpoint: number } };
  });
}

async function warn(runtime: Runtime, { entries, bytes, filled }: WitnessSize): Promise<void> {
  const event = { type: 'witness:filling', entries, bytes, filled: Math.round(filled * 100) } as const;
  await tell(runtime, ({ filling }) =>
    filling === true ? undefined : { now: { filling: true, at: runtime.clock.now() }, event },
  );
}

/** How many damaged chains the store remembers as reported. */
const REMEMBERED = 100;

async function announceDamage(runtime: Runtime, { resource = '', why, kind }: Finding): Promise<void> {
  const event = { type: 'witness:damaged', chain: resource, why: `${kind}: ${why}` } as const;
  await tell(runtime, ({ damaged = [] }) =>
    damaged.includes(resource)
      ? undefined
      : { now: { damaged: [...damaged, resource].slice(-REMEMBERED), at: runtime.clock.now() }, event },
  );
}

interface Saying {
  readonly now: { readonly [K in keyof Told]: Told[K] | undefined };
  /** The event for every process. */
  readonly event?: { readonly type: `witness:${string}` } & Readonly<Record<string, number | string>>;
}

/** Sends every process a warning once; the document records what was sent. `say` returns nothing if they already know. */
async function tell(runtime: Runtime, say: (told: Told) => Saying | undefined): Promise<void> {
  const { told, pair, at } = await readTold(runtime);
  const saying = say(told);
  if (saying === undefined) return;
  const { now, event } = saying;
  const events = event === undefined ? [] : [{ at: runtime.clock.now(), holder: runtime.sender.id, ...event }];
  const value = encode({ record: { ...told, at, ...now }, events });
  await send(runtime, ifUnchanged(WARNINGS_KEY, pair?.modRevision ?? 0, [{ do: 'put', key: WARNINGS_KEY, value }]));
}
