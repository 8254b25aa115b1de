/** All tools. */
import type { Tool } from '../tool.ts';
import { guards } from './guard.ts';
import { acquiring } from './acquire.ts';
import { holds } from './holds.ts';
import { looking } from './looking.ts';
import { work } from './work.ts';

export const TOOLS: readonly Tool[] = [
  ...looking.slice(0, 1),
  ...acquiring,
  ...holds,
  ...work,
  ...guards,
  ...looking.slice(1),
];
