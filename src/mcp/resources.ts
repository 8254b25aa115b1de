/** Resources: the board, and one per lock and semaphore. */
import { type McpServer, ProtocolError, ProtocolErrorCode, ResourceTemplate } from '@modelcontextprotocol/server';
import { nameProblem } from '../core/index.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { boardOf, resourceTold } from './board.ts';
import type { Kind } from './seat.ts';

export const BOARD = 'signalbox://board';

export function resourceUri(kind: Kind, name: string): string {
  return `signalbox://${kind}s/${encodeURIComponent(name)}`;
}

/** The resources that change with an event of this store's resource, such as `lock/main`. */
export function changedBy(resource: string): readonly string[] {
  const [, kind, name] = /^(lock|semaphore)\/([^]*)$/.exec(resource) ?? [];
  return kind === undefined || name === undefined ? [BOARD] : [BOARD, resourceUri(kind as Kind, name)];
}

export function addResources(server: McpServer, box: Signalbox): void {
  const mimeType = 'application/json';
  server.registerResource(
    'board',
    BOARD,
    { title: 'The board', description: 'Who holds what and who waits; tasks, pipelines, members.', mimeType },
    async ({ href: uri }) => ({ contents: [{ uri, mimeType, text: text(await boardOf(box)) }] }),
  );
  for (const kind of ['lock', 'semaphore'] as const) {
    server.registerResource(
      kind,
      new ResourceTemplate(`signalbox://${kind}s/{name}`, {
        list: async () => ({
          resources: (await box.survey())[`${kind}s`].map(({ name }) => ({
            uri: resourceUri(kind, name),
            name: `${kind} ${name}`,
            mimeType,
          })),
        }),
        complete: {
          name: async (begun) =>
            (await box.survey({ leases: false }))[`${kind}s`]
              .map(({ name }) => encodeURIComponent(name))
              .filter((name) => name.startsWith(begun)),
        },
      }),
      {
        title: `A ${kind}`,
        description: `Who holds this ${kind}, since when and why, and who waits for it.`,
        mimeType,
      },
      async ({ href: uri }, { name }) => {
        const called = decoded(String(name));
        const found = await resourceTold(box, { kind, name: called });
        return {
          contents: [{ uri, mimeType, text: text(found ?? { name: called, problem: 'its record cannot be read' }) }],
        };
      },
    );
  }
}

function text(value: unknown): string {
  return JSON.stringify(value, null, 2);
}

function decoded(name: string): string {
  try {
    const called = decodeURIComponent(name);
    const problem = nameProblem(called, 'name');
    if (problem === undefined) return called;
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, problem);
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'the name in the URI is not percent-encoded UTF-8');
  }
}
