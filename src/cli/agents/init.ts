/** `signalbox agents init`: which files it changes, how, and what it reports. */
import { relative } from 'node:path';
import { blockText, type Client, CLIENTS, type HookedClient, hooksFor, mcpServer, type Terms } from './content.ts';
import { type Edit, withBlock, withHooks, withMcpServer, withTomlServer } from './edits.ts';
import { type Place, placeIn, write } from './place.ts';

interface Target {
  readonly path: string;
  /** Whose file it is; every client reads AGENTS.md, or is led to it. */
  readonly clients: readonly Client[];
  /** What is in it, for people. */
  readonly what: string;
  edit(before: string): Edit;
}

export interface Change {
  readonly path: string;
  readonly what: string;
  /** `left` and `refused` come with a reason, and want a person. */
  readonly change: 'created' | 'changed' | 'unchanged' | 'left' | 'refused';
  readonly why?: string;
}

/** Claude Code reads CLAUDE.md, which can take in another file. */
const IMPORT = '@AGENTS.md';

export function targets(terms: Terms): readonly Target[] {
  const block = blockText(terms);
  const server = mcpServer(terms);
  const withServer = (text: string): Edit => withMcpServer(text, server);
  const claude = { clients: ['claude-code'] as const };
  const codex = { clients: ['codex'] as const };
  const hooks = (client: HookedClient) => (text: string) => withHooks(text, hooksFor(client, terms));
  return [
    { path: 'AGENTS.md', clients: CLIENTS, what: 'what agents need to know', edit: (text) => withBlock(text, block) },
    { path: 'CLAUDE.md', ...claude, what: 'leads Claude Code to AGENTS.md', edit: leadToAgents },
    { path: '.mcp.json', ...claude, what: 'the MCP server for Claude Code', edit: withServer },
    { path: '.claude/settings.json', ...claude, what: 'the hooks for Claude Code', edit: hooks('claude-code') },
    {
      path: '.codex/config.toml',
      ...codex,
      what: 'the MCP server for Codex',
      edit: (text) => withTomlServer(text, server),
    },
    { path: '.codex/hooks.json', ...codex, what: 'the hooks for Codex', edit: hooks('codex') },
    { path: '.cursor/mcp.json', clients: ['cursor'], what: 'the MCP server for Cursor', edit: withServer },
  ];
}

function leadToAgents(before: string): Edit {
  const isLed = before.split('\n').some((line) => line.trim() === IMPORT);
  if (isLed) return { kind: 'text', text: before };
  return withBlock(before, IMPORT);
}

/** What is to be done, without doing it; `write` does it. */
export function plan(
  root: string,
  terms: Terms,
  clients: readonly Client[],
): readonly (Change & { readonly write?: () => void; readonly text?: string })[] {
  const chosen = targets(terms).filter((target) => target.clients.some((client) => clients.includes(client)));
  const agents = placeIn(root, 'AGENTS.md');
  return chosen.map((target) => {
    const place = placeIn(root, target.path);
    const { path, what } = target;
    if (place.kind === 'refused') return { path, what, change: 'refused', why: place.why };
    if (path !== 'AGENTS.md' && isSame(agents, place))
      return { path, what, change: 'unchanged', why: 'it is AGENTS.md' };
    const edit = target.edit(place.text ?? '');
    if (edit.kind === 'left') return { path, what, change: 'left', why: edit.why };
    const { text } = edit;
    if (text === place.text) return { path, what, change: 'unchanged', text };
    const change = place.text === undefined ? 'created' : 'changed';
    return { path, what, change, text, write: () => write(place.path, text) };
  });
}

function isSame(one: Place, other: Place): boolean {
  return one.kind === 'file' && other.kind === 'file' && relative(one.path, other.path) === '';
}
