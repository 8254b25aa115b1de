// A program that only listens must not end; one that has said otherwise, or has stopped, must.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startEtcd } from '../support/etcd/server.ts';
import { isMissing } from '../support/programs.ts';
import { built } from '../support/run-processes.ts';

const PROGRAM = fileURLToPath(new URL('programs/listener.mjs', import.meta.url));
const WAYS = ['on', 'events', 'bus.watch', 'tasks.subscribe', 'members.join', 'members.follow', 'members.onTopology'];

const stores = {
  memory: () => Promise.resolve('memory:'),
  file: () => {
    const directory = mkdtempSync(join(tmpdir(), 'signalbox-listener-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    return Promise.resolve(`file:${directory}`);
  },
  etcd: async () => {
    const server = await startEtcd();
    onTestFinished(() => server.stop());
    return `etcd://127.0.0.1:${server.port}`;
  },
};

describe('a program that only listens', () => {
  it.each(['memory', 'file', 'etcd'] as const)(
    'stays alive on %s until it stops, unless it says otherwise',
    async (engine) => {
      if (engine === 'etcd' && isMissing('etcd')) return;
      built();
      const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, await stores[engine]()]);
      const tried = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown);
      expect(tried).toEqual(WAYS.map((name) => ({ name, unless: false, asARule: true })));
    },
  );
});
