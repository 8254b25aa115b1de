/**
 * How a file changes when signalbox puts its part into it. Pure: from the text that is there to the text that should be. The rest
 * of the file stays as it is, and a second time changes nothing.
 */
import { isRecord } from '../../core/shape.ts';
import { HOOK_WORDS, type HookGroup, type Hooks, type McpServer } from './content.ts';

/** The new text; or why the file is left as it is. */
export type Edit = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'left'; readonly why: string };

const BEGIN = 'signalbox:begin';
const END = 'signalbox:end';

/** Markdown: puts the block between two comments, where it was before or at the end of the file. */
export function withBlock(before: string, block: string): Edit {
  const note = 'written by `signalbox agents init`; changes inside are lost';
  return between(
    before,
    `<!-- ${BEGIN} ${note} -->`,
    block.trimEnd(),
    `<!-- ${END} -->`,
    /^<!-- signalbox:(?:begin|end)\b/,
  );
}

function between(before: string, begin: string, body: string, end: string, marker: RegExp): Edit {
  const lines = before.split('\n');
  const marked = lines.flatMap((line, place) => (marker.test(line) ? [place] : []));
  const [first, last] = marked;
  const part = [begin, body, end].join('\n');
  if (marked.length === 0) {
    const gap = before === '' || before.endsWith('\n\n') ? '' : before.endsWith('\n') ? '\n' : '\n\n';
    return { kind: 'text', text: `${before}${gap}${part}\n` };
  }
  const isPair =
    marked.length === 2 &&
    lines[first as number]?.includes(BEGIN) === true &&
    lines[last as number]?.includes(END) === true;
  if (!isPair) return { kind: 'left', why: `its lines with ${BEGIN} and ${END} are not one pair; remove them by hand` };
  const text = [...lines.slice(0, first), part, ...lines.slice((last as number) + 1)].join('\n');
  return { kind: 'text', text };
}

type Members = Readonly<Record<string, unknown>>;

/** `.mcp.json` and `.cursor/mcp.json`. Another server of the same name is left as it is. */
export function withMcpServer(before: string, server: McpServer): Edit {
  return inJson(before, (whole) => {
    const { mcpServers: servers = {} } = whole;
    if (!isRecord(servers)) return 'its mcpServers is not an object';
    const present = servers['signalbox'];
    if (present !== undefined && !isOurs(present)) return 'it has another server called signalbox';
    return { ...whole, mcpServers: { ...servers, signalbox: { ...(present as object | undefined), ...server } } };
  });
}

/** A user may start our server in another way, or with options: it is still ours, and is updated. */
function isOurs(present: unknown): boolean {
  const { command, args } = isRecord(present) ? present : {};
  const words = [command, ...(Array.isArray(args) ? (args as unknown[]) : [])];
  return words.at(-1) === 'mcp' && words.some((word) => typeof word === 'string' && /(?:^|\/)signalbox$/.test(word));
}

/** `.claude/settings.json` and `.codex/hooks.json`: replaces the hooks that an earlier `agents init` wrote. */
export function withHooks(before: string, hooks: Hooks): Edit {
  return inJson(before, (whole) => {
    const { hooks: present = {} } = whole;
    if (!isRecord(present)) return 'its hooks is not an object';
    const all: Record<string, unknown> = { ...present };
    for (const [event, groups] of Object.entries(hooks)) {
      const there = all[event] ?? [];
      if (!Array.isArray(there)) return `its hooks.${event} is not a list`;
      if (groups.every((group) => there.some((one) => JSON.stringify(one) === JSON.stringify(group)))) continue;
      all[event] = [...there.flatMap(withoutOurs), ...groups];
    }
    return { ...whole, hooks: all };
  });
}

function withoutOurs(group: unknown): unknown[] {
  if (!isRecord(group) || !Array.isArray(group['hooks'])) return [group];
  const hooks = group['hooks'] as unknown[];
  const others = hooks.filter((hook) => !isOurHook(hook));
  if (others.length === hooks.length) return [group];
  return others.length === 0 ? [] : [{ ...group, hooks: others as HookGroup['hooks'] }];
}

function isOurHook(hook: unknown): boolean {
  const command = isRecord(hook) ? hook['command'] : undefined;
  return typeof command === 'string' && /\bsignalbox\b/.test(command) && command.includes(HOOK_WORDS);
}

/** Keeps the indentation; keeps the text byte for byte if nothing changes. */
function inJson(before: string, change: (whole: Members) => Members | string): Edit {
  let whole: unknown;
  try {
    whole = before.trim() === '' ? {} : JSON.parse(before);
  } catch (error) {
    return { kind: 'left', why: `it is not JSON: ${(error as Error).message}` };
  }
  if (!isRecord(whole)) return { kind: 'left', why: 'it is not a JSON object' };
  const changed = change(whole);
  if (typeof changed === 'string') return { kind: 'left', why: changed };
  if (JSON.stringify(changed) === JSON.stringify(whole)) return { kind: 'text', text: before };
  const indent = /^[{[]\r?\n([ \t]+)/.exec(before)?.[1] ?? '  ';
  return { kind: 'text', text: `${JSON.stringify(changed, null, indent)}\n` };
}

/** `.codex/config.toml`: a table of its own between two comments. Reads only headings, so the rest of the file cannot be damaged. */
export function withTomlServer(before: string, server: McpServer): Edit {
  const begin = `# ${BEGIN} written by signalbox agents init; changes inside are lost`;
  const [from, to] = [before.indexOf(`# ${BEGIN}`), before.indexOf(`# ${END}`)];
  const others = from >= 0 && to > from ? before.slice(0, from) + before.slice(to) : before;
  const headings = others.split('\n').map((line) => line.replace(/\s+/g, ''));
  if (headings.some((line) => /^\[mcp_servers\.(?:signalbox|"signalbox"|'signalbox')[\].]/.test(line))) {
    return { kind: 'left', why: 'it has another server called signalbox' };
  }
  if (headings.some((line) => /^mcp_servers(?:=|\.)/.test(line))) {
    return { kind: 'left', why: 'it writes mcp_servers without a heading, to which nothing can be added safely' };
  }
  if (/"""|'''/.test(others))
    return { kind: 'left', why: 'it has texts of several lines, which signalbox does not read' };
  const body = [
    '[mcp_servers.signalbox]',
    `command = ${JSON.stringify(server.command)}`,
    `args = [${server.args.map((arg) => JSON.stringify(arg)).join(', ')}]`,
  ].join('\n');
  return between(before, begin, body, `# ${END}`, /^# signalbox:(?:begin|end)\b/);
}
