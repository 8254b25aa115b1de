/** All operations. */
import type { Operation } from '../operation.ts';
import { board } from './board.ts';
import { bus } from './bus.ts';
import { events } from './events.ts';
import { github } from './github.ts';
import { guards } from './guards.ts';
import { history } from './history.ts';
import { locks } from './locks.ts';
import { looking } from './looking.ts';
import { members } from './members.ts';
import { pipelines } from './pipelines.ts';
import { semaphores } from './semaphores.ts';
import { tasks } from './tasks.ts';
import { tokens } from './tokens.ts';
import { witness } from './witness.ts';

export const OPERATIONS: readonly Operation[] = [
  ...locks,
  ...semaphores,
  ...tasks,
  ...guards,
  ...pipelines,
  ...members,
  ...looking,
  ...board,
  ...github,
  ...history,
  ...events,
  ...bus,
  ...tokens,
  ...witness,
];
