/** Parses the files of tasks, pipelines and keys. What is inside a record is checked when it is read, as in any store. */
import { type Json, nameProblem, termsOf, isRecord } from '../../../core/index.ts';
import { shown } from '../../../failure.ts';
import { wholeNumber } from '../../options.ts';
import { keepTime, type Retention } from '../../tasks/retention.ts';
import type { SavedPipeline, SavedState, SavedTask } from './document.ts';
import { documentIn, listIn, namesOnce } from './parse.ts';
import { Place } from './place.ts';

const STATUSES: readonly unknown[] = ['pending', 'complete', 'failed'];

export function parseTasks(file: string, text: string): Pick<SavedState, 'tasks' | 'retention'> {
  const named = namesOnce();
  const { place: list, value: listed, fields: beside } = documentIn(file, text, 'tasks', ['retention']);
  const tasks = list.list(listed).map(([value, place]) => {
    const fields = place.fields(value, ['id', 'status', 'data', 'owner', 'bookkeeping'], ['owner']);
    const { id, status, data, owner, bookkeeping } = fields;
    place.check(nameProblem(id, 'task'));
    named(id as string, place);
    place.expect(STATUSES.includes(status), 'status', status, 'pending, complete or failed');
    if (owner !== undefined) place.at('owner').check(nameProblem(owner, 'owner'));
    place.expect(isRecord(bookkeeping), 'bookkeeping', bookkeeping, 'an object');
    place.at('data').check(termsOf(data).problem);
    return fields as unknown as SavedTask;
  });
  const { retention } = beside;
  return retention === undefined
    ? { tasks }
    : { tasks, retention: retentionIn(new Place(file).at('retention'), retention) };
}

function retentionIn(place: Place, value: unknown): Retention {
  const { keepMs, keepMost } = place.fields(value, ['keepMs', 'keepMost']);
  place.expect(keepTime.fits(keepMs), 'keepMs', keepMs, keepTime.words);
  place.expect(wholeNumber.fits(keepMost), 'keepMost', keepMost, wholeNumber.words);
  return { keepMs: keepMs as number, keepMost: keepMost as number };
}

export function parsePipelines(file: string, text: string): SavedState['pipelines'] {
  const named = namesOnce();
  return listIn(file, text, 'pipelines').map(([value, place]) => {
    const fields = place.fields(value, ['id', 'record', 'spec', 'logs']);
    const { id, record, logs } = fields as { id: unknown; record: Json; logs: unknown };
    place.check(nameProblem(id, 'pipeline'));
    named(id as string, place);
    place.expect(isRecord(record), 'record', record, 'an object');
    if (!isRecord(logs)) throw place.at('logs').problem(`${shown(logs)}; expected an object`);
    const odd = Object.keys(logs).find((name) => !/^\d{3}\/\d{6}$/.test(name));
    if (odd !== undefined) throw place.at('logs').problem(`${shown(odd)} is no place of a log, such as 000/000001`);
    return fields as unknown as SavedPipeline;
  });
}

export function parseKeys(file: string, text: string): SavedState['keys'] {
  const { place, value } = documentIn(file, text, 'keys');
  if (!isRecord(value)) throw place.problem(`${shown(value)}; expected an object`);
  for (const [key, found] of Object.entries(value)) {
    if (typeof found !== 'string') throw place.at(key).problem(`${shown(found)}; expected text`);
    if (key === '' || key.startsWith('/tasks/')) throw place.problem(`${shown(key)} is no key of the bus`);
  }
  return value as Readonly<Record<string, string>>;
}
