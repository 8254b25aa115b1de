/** Which component shows which route: `list` for all of a kind, `one` for one by its name. */
import type { FunctionComponent } from 'preact';
import type { Loaded } from '../live/store.ts';
import type { View } from '../model/route.ts';
import { Charts } from './charts.tsx';
import { OneDeadlock } from './deadlock.tsx';
import { OneIssue } from './github.tsx';
import { OneLock } from './lock.tsx';
import { Locks } from './locks.tsx';
import { OneMember } from './member.tsx';
import { Members } from './members.tsx';
import { Overview } from './overview.tsx';
import { OnePipeline } from './pipeline.tsx';
import { Pipelines } from './pipelines.tsx';
import { OneSemaphore } from './semaphore.tsx';
import { Semaphores } from './semaphores.tsx';
import { OneTask } from './task.tsx';
import { Tasks } from './tasks.tsx';
import { Timeline } from './timeline.tsx';

export interface Route {
  readonly list: FunctionComponent<{ snapshot: Loaded }>;
  readonly one?: FunctionComponent<{ snapshot: Loaded; name: string }>;
}

export const ROUTES: Readonly<Record<View, Route>> = {
  overview: { list: Overview },
  locks: { list: Locks, one: OneLock },
  semaphores: { list: Semaphores, one: OneSemaphore },
  tasks: { list: Tasks, one: OneTask },
  pipelines: { list: Pipelines, one: OnePipeline },
  members: { list: Members, one: OneMember },
  timeline: { list: Timeline },
  charts: { list: Charts },
  github: { list: Locks, one: OneIssue },
  deadlocks: { list: Overview, one: OneDeadlock },
};
