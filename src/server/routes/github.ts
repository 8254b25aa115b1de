/** Lists the locks on GitHub Issues. Workers take these locks on GitHub, not through this server. */
import { z } from 'zod';
import { NO_BOARD } from '../../github/board.ts';
import { ok, type Operation, operation } from '../operation.ts';
import { answer, anyObject } from '../schemas.ts';

const board = z.object({
  repository: z.string().nullable().describe('`owner/name`; null if the server follows no repository.'),
  asOf: z.number().nullable().describe('When the server last asked GitHub, in milliseconds since 1970.'),
  trouble: z
    .string()
    .nullable()
    .describe('What went wrong when the server asked GitHub since then; null if nothing did.'),
  everyMs: z.number().describe('How often the server asks GitHub; reading again sooner shows the same list.'),
  locks: z.array(anyObject),
});

export const github: readonly Operation[] = [
  operation({
    ...{ id: 'github.list', method: 'get', path: '/v1/github/locks', tag: 'github', role: 'viewer' },
    summary: 'List the locks on GitHub Issues',
    description:
      'The locks of the repository that the server follows (`signalbox serve --github owner/name`), at most 15 s old. ' +
      'Workers take and release them on GitHub, not through this server.',
    answers: answer('The locked issues.', board),
    run: async ({ github: one }) => ok((await one?.look()) ?? NO_BOARD),
  }),
];
