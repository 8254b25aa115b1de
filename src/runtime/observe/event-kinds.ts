/** What events are about: the first word of their types. */
export const EVENT_KINDS = ['lock', 'semaphore', 'task', 'pipeline', 'member', 'guard'] as const;

export type EventKind = (typeof EVENT_KINDS)[number];
