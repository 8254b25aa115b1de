/** Parses a runbook written in YAML, JSON or code; returns the runbook, or everything that is wrong with it. */
import { given } from '../given.ts';
import { nameProblem } from '../name.ts';
import type { Path, Problem } from '../shape.ts';
import { shown } from '../shown.ts';
import { guards, type PlacedGuard } from './guards.ts';
import { holds } from './holds.ts';
import { type Dialect, type Read, Reading } from './reading.ts';
import { DEFAULT_BACKOFF_MS, type Phase, type PhaseWork, type Runbook } from './runbook.ts';
import { environment, idempotent, onFailure, retries, timeout, wakeOn } from './settings.ts';

export type ParsedRunbook =
  | { readonly ok: true; readonly runbook: Runbook }
  | { readonly ok: false; readonly problems: readonly Problem[] };

export const MOST_PHASES = 200;
/** Leaves room for what is added to it: `NAME-TIME` and `NAME.pre.2` must be names too. */
const LONGEST_OWN_NAME = 100;
const LONGEST_LINE = 65_536;
/** The store keeps the runbook, and takes nothing much larger. */
export const LARGEST_RUNBOOK = 262_144;

/** Never throws on anything that JSON or YAML can say. */
export function parseRunbook(value: unknown, dialect: Dialect = 'text'): ParsedRunbook {
  const reading = new Reading(dialect);
  const runbook = runbookOf(reading, value);
  if (runbook !== undefined && reading.problems.length === 0) refuseTooLarge(reading, runbook);
  if (runbook === undefined || reading.problems.length > 0) return { ok: false, problems: reading.problems };
  return { ok: true, runbook };
}

function runbookOf(reading: Reading, value: unknown): Runbook | undefined {
  const fields = reading.fields(value, [], ['name', 'phases'], ['env']);
  if (fields === undefined) return undefined;
  const name = reading.field(fields, 'name', [], ownName);
  const env = reading.field(fields, 'env', [], environment) ?? {};
  const read = reading.field(fields, 'phases', [], phases) ?? [];
  refuseSameNames(reading, read);
  refuseSameGuards(reading, read);
  refuseOtherCapacities(reading, read);
  return name === undefined ? undefined : { name, env, phases: read.map(({ phase }) => phase) };
}

/** A phase, and where it was written. */
interface PlacedPhase {
  readonly phase: Phase;
  readonly guards: readonly PlacedGuard[];
  readonly at: Path;
}

const phases: Read<readonly PlacedPhase[]> = (reading, value, path) => {
  if (!Array.isArray(value) || value.length === 0) {
    return reading.unaccepted(value, path, 'a list of at least one phase, each {name, run, …}');
  }
  if (value.length > MOST_PHASES) {
    return reading.refuse(path, `${value.length} phases are too many; expected at most ${MOST_PHASES}`);
  }
  const read = Array.from(value, (item, at) => phaseOf(reading, item, [...path, at]));
  return read.filter((phase) => phase !== undefined);
};

const OPTIONAL = ['pre', 'post', 'holds', 'wakeOn', 'onFailure', 'timeout', 'retries', 'idempotent', 'env'];

function phaseOf(reading: Reading, value: unknown, at: Path): PlacedPhase | undefined {
  const optional = reading.dialect === 'code' ? [...OPTIONAL, 'timeoutMs'] : OPTIONAL;
  const fields = reading.fields(value, at, ['name', 'run'], optional);
  if (fields === undefined) return undefined;
  const name = reading.field(fields, 'name', at, ownName);
  const run = reading.field(fields, 'run', at, work);
  const failing = reading.field(fields, 'onFailure', at, onFailure);
  const waking = reading.field(fields, 'wakeOn', at, wakeOn);
  const defaults = given({ onFailure: failing, wakeOn: waking });
  const pre = reading.field(fields, 'pre', at, guards(`${name}.pre`, defaults)) ?? [];
  const post = reading.field(fields, 'post', at, guards(`${name}.post`, defaults)) ?? [];
  const timeoutMs = timeout(reading, fields, at);
  const rest = {
    pre: pre.map(({ guard }) => guard),
    post: post.map(({ guard }) => guard),
    holds: reading.field(fields, 'holds', at, holds) ?? [],
    ...given({ onFailure: failing, timeoutMs }),
    ...(reading.field(fields, 'retries', at, retries) ?? { retries: 0, backoffMs: DEFAULT_BACKOFF_MS }),
    idempotent: reading.field(fields, 'idempotent', at, idempotent) ?? false,
    env: reading.field(fields, 'env', at, environment) ?? {},
  };
  // Remembers the name of a phase with a mistake too, so that a second phase of this name is reported.
  const placed = name === undefined ? [] : [...pre, ...post];
  return { phase: { name: name ?? '', run: run ?? { shell: '' }, ...rest }, guards: placed, at };
}

const ownName: Read<string> = (reading, value, path) => {
  const problem = nameProblem(value, 'name', LONGEST_OWN_NAME);
  return problem === undefined ? (value as string) : reading.refuse(path, problem);
};

const work: Read<PhaseWork> = (reading, value, path) => {
  if (typeof value === 'function' && reading.dialect === 'code') return { function: true };
  const also = reading.dialect === 'code' ? ', or a function' : '';
  const accepted = `a line for the shell, of 1 to ${LONGEST_LINE} characters without NUL${also}`;
  if (typeof value === 'string') {
    if (value.trim() !== '' && value.length <= LONGEST_LINE && !value.includes('\0')) return { shell: value };
    return reading.unaccepted(value, path, accepted);
  }
  // YAML does not read `true` or a number as text, and people do write `true` as a command.
  const isWord = typeof value === 'boolean' || typeof value === 'number';
  return reading.unaccepted(value, path, isWord ? `${accepted}; quote it: run: "${value}"` : accepted);
};

function refuseSameNames(reading: Reading, read: readonly PlacedPhase[]): void {
  const seen = new Set<string>();
  for (const { phase, at } of read) {
    if (phase.name !== '' && seen.has(phase.name)) {
      reading.refuse([...at, 'name'], `another phase is called ${shown(phase.name)} too; expected a name of its own`);
    }
    seen.add(phase.name);
  }
}

/** Refuses two guards of one id: messages name a guard by its id. */
function refuseSameGuards(reading: Reading, read: readonly PlacedPhase[]): void {
  const seen = new Set<string>();
  for (const { guard, at } of read.flatMap((phase) => phase.guards)) {
    if (seen.has(guard.id)) {
      reading.refuse(at, `another guard has the id ${shown(guard.id)} too; expected an id of its own`);
    }
    seen.add(guard.id);
  }
}

/** Refuses two capacities of one semaphore: the second would fail at run time, in the middle of the pipeline. */
function refuseOtherCapacities(reading: Reading, read: readonly PlacedPhase[]): void {
  const known = new Map<string, number>();
  for (const { phase, at } of read) {
    for (const hold of phase.holds) {
      if (!('semaphore' in hold) || hold.capacity === undefined) continue;
      const before = known.get(hold.semaphore) ?? hold.capacity;
      known.set(hold.semaphore, before);
      if (before === hold.capacity) continue;
      reading.refuse(
        [...at, 'holds'],
        `the semaphore ${hold.semaphore} has a capacity of ${hold.capacity} here and of ${before} before; expected the same everywhere`,
      );
    }
  }
}

function refuseTooLarge(reading: Reading, runbook: Runbook): void {
  const { length } = JSON.stringify(runbook);
  if (length <= LARGEST_RUNBOOK) return;
  reading.refuse(
    [],
    `the runbook has ${length} characters as JSON; expected at most ${LARGEST_RUNBOOK}: scripts can be files of their own`,
  );
}
