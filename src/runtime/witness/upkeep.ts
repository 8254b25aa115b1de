/**
 * What maintenance does with the record of the witness: seals it when it is time, warns when it fills, trims it when it is
 * full, and names what does not verify.
 */
import type { Checkpoint, Finding } from '../../core/witness/index.ts';
import { Failure } from '../../failure.ts';
import { readRange } from '../../store/index.ts';
import { anchorKey, encode, RECORD_KEEPER } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { takeRole } from '../session/role.ts';
import { send } from '../write/write-once.ts';
import { readHeads } from './chains.ts';
import { readCheckpoint, readSealed, type Sealed } from './checkpoints.ts';
import { exportLines } from './proving.ts';
import { type RecordKeeping, retentionOf, sizeOf, trim, WARNED_AT, type WitnessRetention } from './retention.ts';
import { checkpoint } from './sealing.ts';
import { readTold, type Told, WARNINGS_KEY } from './warnings.ts';

/** One round. A process that signs, anchors or archives takes it over from the maintainer. */
export async function maintainRecord(runtime: Runtime, keeping?: RecordKeeping): Promise<void> {
  if (keeping !== undefined) await runtime.ready();
  if (keeping === undefined ? await hasKeeper(runtime) : !(await takeRole(runtime, RECORD_KEEPER))) return;
  const limits = await retentionOf(runtime);
  const size = await sizeOf(runtime, limits);
  if (size.entries === 0) return;
  try {
    if (size.filled >= 1) return await empty(runtime, size.entries, keeping);
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
  // A record that has not grown is sealed already, unless the seal lacks a signature that this process can give.
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
  await anchor?.(made);
  return made;
}

async function empty(runtime: Runtime, entries: number, keeping?: RecordKeeping): Promise<void> {
  const made = await seal(runtime, keeping);
  await keeping?.archive?.(exportLines(runtime, { by: 'signalbox' }), made);
  const trimmed = await trim(runtime, made.number);
  const left = { trimmed, entries: entries - trimmed, checkpoint: made.number };
  await announce(runtime, 'witness:trimmed', left, { filling: false });
}

async function warn(runtime: Runtime, { entries, bytes, filled }: Awaited<ReturnType<typeof sizeOf>>): Promise<void> {
  await announce(
    runtime,
    'witness:filling',
    { entries, bytes, filled: Math.round(filled * 100) },
    { filling: true },
    ({ filling }) => filling === true,
  );
}

async function announceDamage(runtime: Runtime, { resource = '', why, kind }: Finding): Promise<void> {
  const known = (told: Told): boolean => told.damaged?.includes(resource) === true;
  await announce(runtime, 'witness:damaged', { chain: resource, why: `${kind}: ${why}` }, { damaged: resource }, known);
}

/** Damaged chains that are remembered as told. */
const REMEMBERED = 100;

/** Tells every process, once: the document says what was told. */
async function announce(
  runtime: Runtime,
  type: 'witness:trimmed' | 'witness:filling' | 'witness:damaged',
  detail: Readonly<Record<string, number | string>>,
  now: { readonly filling?: boolean; readonly damaged?: string },
  isKnown: (told: Told) => boolean = () => false,
): Promise<void> {
  const { told, pair } = await readTold(runtime);
  if (isKnown(told)) return;
  const { filling = told.filling ?? false } = now;
  const damaged = [...(told.damaged ?? []), ...(now.damaged === undefined ? [] : [now.damaged])].slice(-REMEMBERED);
  const event = { type, at: runtime.clock.now(), holder: runtime.sender.id, ...detail };
  await send(runtime, {
    compare: [{ key: WARNINGS_KEY, target: 'mod', is: '=', than: pair?.modRevision ?? 0 }],
    success: [{ do: 'put', key: WARNINGS_KEY, value: encode({ record: { filling, damaged }, events: [event] }) }],
    failure: [],
  });
}
