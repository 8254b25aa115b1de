/** What a phase holds: `{ locks: [main, docs:shared], semaphores: [agents=1/2] }`, or the same as objects. */
import { nameProblem } from '../name.ts';
import { isRecord, type Path, positiveInteger } from '../shape.ts';
import { plainName, type Wanted, wantedLock, type WantedLock, wantedSlots, type WantedSlots } from '../wanted.ts';
import { oneOrMore, present, type Read, type Reading, shaped } from './reading.ts';
import type { PhaseHold } from './runbook.ts';

export const holds: Read<readonly PhaseHold[]> = (reading, value, path) => {
  const fields = reading.fields(value, path, [], ['locks', 'semaphores']);
  if (fields === undefined) return undefined;
  const locks = reading.field(fields, 'locks', path, oneOrMore('a lock such as main or docs:shared', lock)) ?? [];
  const semaphores = reading.field(fields, 'semaphores', path, slotsOrMap) ?? [];
  refuseTwice(
    reading,
    locks.map(({ want, at }) => ({ name: `lock ${want.lock}`, at })),
  );
  refuseTwice(
    reading,
    semaphores.map(({ want, at }) => ({ name: `semaphore ${want.semaphore}`, at })),
  );
  return [...locks, ...semaphores].map(({ want }) => want);
};

/** What is wanted, and where it was written. */
interface Placed<Want> {
  readonly want: Want;
  readonly at: Path;
}

const lock: Read<Placed<WantedLock>> = (reading, value, path) => {
  if (typeof value === 'string') return placed(reading, wantedLock(value), path);
  if (!isRecord(value)) return reading.unaccepted(value, path, 'a lock such as main or docs:shared, or {name, mode}');
  const fields = reading.fields(value, path, ['name'], ['mode']);
  const name = fields && reading.field(fields, 'name', path, nameOf('lock'));
  const mode = fields?.['mode'];
  if (mode !== undefined && mode !== 'shared' && mode !== 'exclusive') {
    return reading.unaccepted(mode, [...path, 'mode'], 'shared or exclusive');
  }
  return name === undefined ? undefined : { want: mode === 'shared' ? { lock: name, mode } : { lock: name }, at: path };
};

const SLOTS = 'slots such as agents, agents=1 or agents=1/2, or {name, weight, capacity}';

const slots: Read<Placed<WantedSlots>> = (reading, value, path) => {
  if (typeof value === 'string') return sensible(reading, placed(reading, wantedSlots(value), path));
  if (!isRecord(value)) return reading.unaccepted(value, path, SLOTS);
  const fields = reading.fields(value, path, ['name'], ['weight', 'capacity']);
  const name = fields && reading.field(fields, 'name', path, nameOf('semaphore'));
  return sensible(reading, fields && counted(reading, name, fields, path));
};

/** `[agents=1/2]` or `{agents: 1}`, or a single one. */
const slotsOrMap: Read<readonly Placed<WantedSlots>[]> = (reading, value, path) => {
  if (!isRecord(value) || Object.hasOwn(value, 'name')) return oneOrMore(SLOTS, slots)(reading, value, path);
  return present(
    Object.entries(value).map(([key, argument]) => {
      const at = [...path, key];
      const name = nameOf('semaphore')(reading, key, at);
      if (!isRecord(argument)) return sensible(reading, counted(reading, name, { weight: argument }, path, key));
      const fields = reading.fields(argument, at, [], ['weight', 'capacity']);
      return sensible(reading, fields && counted(reading, name, fields, at));
    }),
  );
};

function counted(
  reading: Reading,
  semaphore: string | undefined,
  given: Readonly<Record<string, unknown>>,
  path: Path,
  weightKey = 'weight',
): Placed<WantedSlots> | undefined {
  const weighed = given['weight'] === undefined ? {} : { [weightKey]: given['weight'] };
  const weight = reading.field(weighed, weightKey, path, count);
  const capacity = reading.field(given, 'capacity', path, count);
  if (semaphore === undefined) return undefined;
  const want = { semaphore, ...(weight !== undefined && { weight }), ...(capacity !== undefined && { capacity }) };
  return { want, at: path };
}

const count = shaped<number>(positiveInteger);

/** Refuses more slots than the capacity: no phase could ever get them. */
function sensible(reading: Reading, slots: Placed<WantedSlots> | undefined): Placed<WantedSlots> | undefined {
  if (slots === undefined) return undefined;
  const { semaphore, weight = 1, capacity = Number.POSITIVE_INFINITY } = slots.want;
  if (weight <= capacity) return slots;
  return reading.refuse(
    slots.at,
    `a weight of ${weight} of the semaphore ${semaphore} can never be had: its capacity is ${capacity}`,
  );
}

function nameOf(kind: 'lock' | 'semaphore'): Read<string> {
  return (reading, value, path) => {
    const name = typeof value === 'string' ? plainName(kind, value) : value;
    const problem = nameProblem(name, kind);
    return problem === undefined ? (name as string) : reading.refuse(path, problem);
  };
}

function placed<Want>(reading: Reading, wanted: Wanted<Want>, at: Path): Placed<Want> | undefined {
  return wanted.ok ? { want: wanted.want, at } : reading.refuse(at, wanted.problem);
}

function refuseTwice(reading: Reading, named: readonly { readonly name: string; readonly at: Path }[]): void {
  const seen = new Set<string>();
  for (const { name, at } of named) {
    if (seen.has(name)) reading.refuse(at, `the ${name} is held twice by this phase; expected once`);
    seen.add(name);
  }
}
