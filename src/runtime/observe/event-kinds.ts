/** The kinds of events: the first word of an event type. */
export const EVENT_KINDS = [
  'lock',
  'semaphore',
  'task',
  'pipeline',
  'member',
  'coordinator',
  'topology',
  'guard',
  'witness',
] as const;

export type EventKind = (typeof EVENT_KINDS)[number];
