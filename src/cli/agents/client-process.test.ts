import { describe, expect, it } from 'vitest';
import { identify, type ProcessIdentity } from '../../host/index.ts';
import { clientOf, clientOfNamed, isLauncher } from './client-process.ts';

describe('a process between a client and signalbox', () => {
  it.each([
    [['/bin/sh', '-c', 'signalbox mcp'], true],
    [['bash', '-lc', 'git push'], true],
    [['/bin/bash', '/home/ada/start.sh'], true],
    [['npm exec signalbox mcp --store file:/var/lib/box'], true],
    [['/usr/bin/node', '/usr/lib/node_modules/npm/bin/npx-cli.js', '-y', 'signalbox', 'mcp'], true],
    [['timeout', '15', 'signalbox', 'agents', 'hook', 'codex'], true],
    [['claude'], false],
    [['/usr/local/bin/codex', '--full-auto'], false],
    [['node', '/opt/agent/cli.js'], false],
    [['-bash'], false],
    [['zsh', '-l'], false],
    [['tmux'], false],
    [[], false],
  ])('%j is one: %s', (command, isOne) => {
    expect(isLauncher(command)).toBe(isOne);
  });

  it.runIf(process.platform === 'linux')('belongs to no client once another process has its pid', () => {
    const here = identify(process.pid) as ProcessIdentity;
    expect(clientOfNamed(here)).toEqual(clientOf(process.pid));
    expect(clientOfNamed({ ...here, start: '1' })).toBeUndefined();
  });
});
