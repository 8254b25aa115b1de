/** Locks on GitHub Issues, as the server sees them. Workers take them on GitHub itself. */
import { z } from 'zod';
import { NO_BOARD } from '../../github/board.ts';
import { ok, type Operation, operation } from '../operation.ts';
import { anyObject } from '../schemas.ts';

const board = z.object({
  repository: z.string().nullable().describe('`owner/name`; null if the server follows no repository.'),
  asOf: z.number().nullable().describe('When GitHub was asked, in milliseconds since 1970.'),
  trouble: z.string().nullable().describe('Why GitHub could not be asked since.'),
  everyMs: z.number().describe('How often GitHub is asked: to look again sooner shows the same.'),
  locks: z.array(anyObject),
});

export const github: readonly Operation[] = [
  operation({
    ...{ id: 'github.list', method: 'get', path: '/v1/github/locks', tag: 'github', role: 'viewer' },
    summary: 'List the locks on GitHub Issues',
    description:
      'Of the repository that the server was told to follow (`signalbox serve --github owner/name`), at most 15 s old. ' +
      'Workers take and release them on GitHub itself.',
    answers: { 200: { description: 'The locked issues.', schema: board } },
    run: async ({ github: one }) => ok((await one?.look()) ?? NO_BOARD),
  }),
];
