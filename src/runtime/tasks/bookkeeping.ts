/**
 * The bookkeeping of a task as it is read. Its key is plain: another program can have put anything there, and one that did must
 * not bring down whoever reads it. What is not as it should be counts as not said.
 */
import { type Event, NO_BOOKKEEPING, type TaskBookkeeping } from '../../core/index.ts';

type Check = (value: unknown) => boolean;

/** The latest time that a date can tell. */
const LATEST = 8.64e15;

const isText: Check = (value) => typeof value === 'string';
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isTime: Check = (value) => typeof value === 'number' && Math.abs(value) <= LATEST;
const hasFields =
  (fields: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isObject(value) && Object.entries(fields).every(([name, isRight]) => isRight(value[name]));

const FIELDS: Readonly<Record<Exclude<keyof TaskBookkeeping, 'attempts' | 'events' | 'result'>, Check>> = {
  publication: isText,
  publishedAt: isTime,
  publishedBy: isText,
  claim: hasFields({ id: isText, holder: isText, at: isTime }),
  ended: hasFields({ token: isCount, request: isText, how: isText }),
  reason: isText,
  endedAt: isTime,
};

const isEvent: Check = hasFields({
  type: (type) => typeof type === 'string' && type.startsWith('task:'),
  at: isTime,
  holder: isText,
});

export function bookkeepingOf(json: unknown): TaskBookkeeping {
  if (!isObject(json)) return NO_BOOKKEEPING;
  const { attempts, events, ...rest } = json;
  const wrong = Object.entries(FIELDS).filter(([name, isRight]) => name in rest && !isRight(rest[name]));
  return {
    ...(wrong.length === 0 ? rest : without(rest, wrong)),
    attempts: isCount(attempts) ? (attempts as number) : 0,
    events: Array.isArray(events) ? (events as Event[]).filter(isEvent) : [],
  };
}

function without(fields: object, wrong: readonly (readonly [string, Check])[]): object {
  const names = wrong.map(([name]) => name);
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
