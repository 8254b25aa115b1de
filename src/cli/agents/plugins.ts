/**
 * The plugins for Claude Code and Codex, file by file: the same hooks, MCP server and text that `agents init` writes into a
 * repository. `test/house/plugins.test.ts` keeps the folder `plugins/` as it is described here.
 */
import { DEFAULT_TERMS, type HookedClient, hooksFor, mcpServer, teaching, type Terms } from './content.ts';

const DESCRIPTION =
  'Coding agents take turns: locks for pushes, deploys and everything else that only one of them may do at a time.';
const WHEN =
  'Take turns with other agents and people in this repository. Use it before a push or a merge to main, a deploy, a migration, ' +
  'or anything else that must not happen twice at the same time, and when a command ends with exit code 75.';

/** By the path from the root of this repository. */
export function pluginFiles(version: string, terms: Terms = DEFAULT_TERMS): Readonly<Record<string, string>> {
  const about = { name: 'signalbox', version, description: DESCRIPTION, license: 'Apache-2.0' };
  return {
    ...pluginOf('claude-code', '.claude-plugin', about, terms),
    ...pluginOf('codex', '.codex-plugin', { ...about, skills: './skills/', mcpServers: './.mcp.json' }, terms),
    '.claude-plugin/marketplace.json': json({
      name: 'signalbox',
      owner: { name: 'signalbox' },
      plugins: [{ name: 'signalbox', source: './plugins/claude-code', description: DESCRIPTION }],
    }),
    '.agents/plugins/marketplace.json': json({
      name: 'signalbox',
      interface: { displayName: 'signalbox' },
      plugins: [
        {
          name: 'signalbox',
          source: { source: 'local', path: './plugins/codex' },
          policy: { installation: 'AVAILABLE', authentication: 'ON_INSTALL' },
          category: 'Productivity',
        },
      ],
    }),
  };
}

function pluginOf(
  client: HookedClient,
  manifest: string,
  about: object,
  terms: Terms,
): Readonly<Record<string, string>> {
  const at = `plugins/${client}`;
  return {
    [`${at}/${manifest}/plugin.json`]: json(about),
    [`${at}/.mcp.json`]: json({ mcpServers: { signalbox: mcpServer(terms) } }),
    [`${at}/hooks/hooks.json`]: json({ hooks: hooksFor(client, terms) }),
    [`${at}/skills/signalbox/SKILL.md`]: `---\nname: signalbox\ndescription: ${WHEN}\n---\n\n# Taking turns\n\n${teaching(terms)}`,
  };
}

/** As the formatter of this repository has it. */
function json(value: object): string {
  return `${JSON.stringify(value, null, 2).replace(/\[\s+("[^"\n]*")\s+\]/g, '[$1]')}\n`;
}
