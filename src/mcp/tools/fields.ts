/** Arguments that several tools share. Flat, each with a description, because that is all a model sees. */
import { z } from 'zod';
import { HIGHEST_PRIORITY, LOWEST_PRIORITY } from '../../core/request.ts';
import { named } from '../../server/schemas.ts';

export const MOST_WAIT_SECONDS = 86_400;
const MOST_MINUTES = 1_440;

export const name = named(
  'name',
  'Its name, such as main-branch. All agents that share the resource must use the same name.',
);
export const kind = z
  .enum(['lock', 'semaphore'])
  .optional()
  .describe('lock (one at a time; the default) or semaphore (a fixed number of slots).');
export const holder = named('holder', 'Who you are: the holder that acquire or claim answered.');
export const newHolder = named(
  'holder',
  'Who asks. Leave it out the first time: the answer names one for you. A holder that asks again gets the same hold.',
).optional();
export const token = z.int().min(1).describe('The token that came with the grant.');
export const task = named('task', 'The id of the task.');
export const ticket = z.string().max(8_000).describe('The ticket that acquire answered, unchanged.');
export const priority = z.int().min(LOWEST_PRIORITY).max(HIGHEST_PRIORITY).optional().describe('Higher goes first; 0.');
export const reason = z.string().min(1).max(1_000);
export const capabilities = z.array(named('capability', 'Such as code-analysis:rust.')).max(100).optional();
export const waitSeconds = z.number().min(0).max(MOST_WAIT_SECONDS).optional();
export const maxHoldMinutes = z.number().positive().max(MOST_MINUTES).optional();

/** Accepts an object as text too, because models sometimes send it so. */
export const jsonObject = z.preprocess((value) => {
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}, z.looseObject({}));
