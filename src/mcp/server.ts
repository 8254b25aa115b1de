/** The MCP server of one caller: its tools, resources and prompt, for both generations of the protocol. */
import {
  CLIENT_INFO_META_KEY,
  McpServer,
  type McpRequestContext,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { z } from 'zod';
import { allows, mayActFor } from '../core/index.ts';
import { shown } from '../failure.ts';
import { randomHex } from '../host/random.ts';
import { ETIQUETTE, INSTRUCTIONS } from './etiquette.ts';
import { placeIn } from './place.ts';
import { addResources } from './resources.ts';
import { failureTold, refused, resultOf, type Told } from './result.ts';
import { addTasks, takesTasks, taskResult, TASKS } from './tasks.ts';
import { answerSchema, type Desk, type TaskMade, type Tool, type ToolCall } from './tool.ts';
import { TOOLS } from './tools/index.ts';

export interface McpOptions {
  readonly version: string;
  /** Whether this transport can announce changed resources to a client of the older generation. */
  readonly notifiesLegacy: boolean;
}

const MOST_PROBLEMS = 5;

/** How long clients may cache: lists never change while the server runs, the state of resources changes all the time. */
const STEADY = { ttlMs: 3_600_000, cacheScope: 'private' } as const;
const FLEETING = { ttlMs: 0, cacheScope: 'private' } as const;

export function mcpServer(desk: Desk, { era }: Pick<McpRequestContext, 'era'>, options: McpOptions): McpServer {
  const isModern = era === 'modern';
  const server = new McpServer(
    { name: 'signalbox', title: 'signalbox', version: options.version },
    {
      instructions: INSTRUCTIONS,
      capabilities: {
        tools: { listChanged: false },
        prompts: { listChanged: false },
        resources: { listChanged: false, subscribe: isModern || options.notifiesLegacy },
        ...(isModern && { extensions: { [TASKS]: {} } }),
      },
      cacheHints: {
        ...{ 'tools/list': STEADY, 'prompts/list': STEADY, 'resources/templates/list': STEADY },
        ...{ 'server/discover': STEADY, 'resources/list': FLEETING, 'resources/read': FLEETING },
      },
    },
  );
  addTools(server, desk);
  addResources(server, desk.box);
  server.registerPrompt(
    'etiquette',
    {
      title: 'How to work beside others',
      description: 'Explains how to use locks and tasks together with other agents.',
    },
    () => ({ messages: [{ role: 'user', content: { type: 'text', text: ETIQUETTE } }] }),
  );
  if (isModern) addTasks(server, desk);
  return server;
}

/** Registers the tools that the caller's role allows. */
function addTools(server: McpServer, desk: Desk): void {
  const tools = new Map(TOOLS.filter(({ role }) => allows(desk.caller.role, role)).map((one) => [one.name, one]));
  for (const { name, title, description, input, output, annotations } of tools.values()) {
    const outputSchema = output === undefined ? {} : { outputSchema: answerSchema(output) };
    server.registerTool(
      name,
      { title, description, inputSchema: input as never, ...outputSchema, annotations: { title, ...annotations } },
      // Answered below.
      (() => undefined) as never,
    );
  }
  // The SDK would answer wrong arguments with its own text, without status and next.
  server.server.setRequestHandler('tools/call', async ({ params: { name, arguments: given = {} } }, ctx) => {
    const tool = tools.get(name);
    if (tool === undefined) {
      const what = `there is no tool ${shown(name)} for this token; there are ${[...tools.keys()].join(', ')}`;
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, what);
    }
    const answer = await answered(tool, given, callOf(desk, server, ctx));
    return 'task' in answer ? (taskResult(desk, answer) as never) : resultOf(answer);
  });
}

async function answered(tool: Tool, given: unknown, call: ToolCall): Promise<Told | TaskMade> {
  const { seat, caller } = call;
  const parsed = tool.input.safeParse(given);
  if (!parsed.success) return wrongInput(tool, parsed.error);
  try {
    const holder = holderIn(parsed.data);
    const isOwn = holder !== undefined && allows(caller.role, 'worker') && mayActFor(caller, holder);
    if (isOwn && seat.needsTouch(holder) && tool.renewsHolder !== true) await seat.touch(holder);
    return await tool.run(parsed.data, call);
  } catch (error) {
    return failureTold(error);
  }
}

/** Finds the calling holder by its name or by its ticket. Refuses an invalid ticket, as the tool would. */
function holderIn(input: unknown): string | undefined {
  const { holder, ticket } = input as { readonly holder?: string; readonly ticket?: string };
  return holder ?? (ticket === undefined ? undefined : placeIn(ticket).holder);
}

function wrongInput({ name, input }: Tool, { issues }: z.ZodError): Told {
  // Reported first: an unknown argument explains most of the other problems.
  const isUnknown = ({ code }: z.core.$ZodIssue): boolean => code === 'unrecognized_keys';
  const sorted = [...issues.filter(isUnknown), ...issues.filter((issue) => !isUnknown(issue))].slice(0, MOST_PROBLEMS);
  const more = issues.length > MOST_PROBLEMS ? '; and more' : '';
  const problems = sorted.map(problemTold).join('; ') + more;
  const fields = Object.keys((input as unknown as { readonly shape: object }).shape);
  const takes = fields.length === 0 ? 'it takes none' : `it takes ${fields.join(', ')}`;
  const next = `Correct the arguments (${takes}) and call again.`;
  return refused('invalid-input', `${name}: ${problems}. Nothing was changed.`, next);
}

function problemTold({ path, message, ...issue }: z.core.$ZodIssue): string {
  const where = path.join('.');
  if (issue.code === 'unrecognized_keys') return `there is no ${issue.keys.map(shown).join(', ')}`;
  if (issue.code === 'invalid_type' && message.endsWith('received undefined')) return `${where} is missing`;
  return where === '' ? message : `${where}: ${message.replace(/^Invalid input: /, '')}`;
}

function callOf(desk: Desk, { server }: McpServer, ctx: ServerContext): ToolCall {
  const { mcpReq } = ctx;
  const { envelope, _meta, signal } = mcpReq;
  const told = (envelope ?? {}) as { readonly [CLIENT_INFO_META_KEY]?: { readonly name?: string } };
  const client = told[CLIENT_INFO_META_KEY]?.name ?? server.getClientVersion()?.name;
  const token = _meta?.progressToken;
  return {
    ...desk,
    signal: desk.gone === undefined ? signal : AbortSignal.any([signal, desk.gone]),
    takesTasks: takesTasks(ctx),
    progress:
      token === undefined
        ? undefined
        : (waitedMs, ofMs, message) => {
            const params = { progressToken: token, progress: waitedMs / 1000, total: ofMs / 1000, message };
            // The client may have disconnected.
            void mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined);
          },
    newHolder: () => newHolder(client, desk.caller.holders),
  };
}

/**
 * Makes a new name for each agent, because two agents of one client are two holders. With a bound token, the name is one that it
 * may use.
 */
function newHolder(client: string | undefined, bound: readonly string[] | undefined): string {
  const own = randomHex(4);
  if (bound === undefined) {
    const word = (client ?? '')
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .slice(0, 40)
      .replaceAll(/^-|-$/g, '');
    return `agent:${word === '' ? '' : `${word}-`}${own}`;
  }
  const pattern = bound.find((one) => one.includes('*')) ?? bound[0] ?? own;
  return pattern.replaceAll('*', own);
}
