/** What the witness enters of the writes to tasks. */
import type { Event, Json, Task } from '../../core/index.ts';
import { taskKeys, taskResource } from './keys.ts';
import { said } from '../write/witnessed.ts';
import type { Deed } from '../write/witnessed-commit.ts';

interface Told {
  readonly actor: string;
  readonly command: string;
  readonly outcome: string;
  readonly events?: readonly Event[];
  readonly detail?: { readonly [name: string]: Json };
  readonly reason?: string | undefined;
  /** The data of the task, or its result. */
  readonly data?: Json | undefined;
  readonly component?: string;
  /** When it was asked for, if it may wait. */
  readonly askedAt?: number | undefined;
}

/** `task`: as it was before the write. */
export function taskDeeds(
  { id, bookkeeping }: Pick<Task, 'id' | 'bookkeeping'>,
  { actor, command, outcome, events = [], detail, reason, data, component, askedAt }: Told,
): readonly Deed[] {
  const { trace, sensitive, head } = bookkeeping?.entry ?? {};
  return [
    {
      resource: taskResource(id),
      actor,
      command,
      outcome,
      events: events.map(({ type }) => type),
      // A getter, read only if the witness is on: hashing the data costs more than the rest of the write.
      get detail() {
        const whole: { [name: string]: Json } = { ...detail };
        said(whole, {
          ...(reason !== undefined && { reason }),
          ...(data !== undefined && { data }),
          ...(sensitive && { sensitive }),
        });
        return whole;
      },
      trace,
      component,
      askedAt,
      // Any client of an etcd can delete the keys of a task.
      isLeased: command !== 'forget',
      carrier: taskKeys(id).signalbox,
      carried: head && bookkeeping && { ...head, keyMod: bookkeeping.mod },
    },
  ];
}
