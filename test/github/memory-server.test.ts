// The lock cache in a memory service that is reached over MCP, each in a process of its own.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { memoryCache, type MemoryServer } from 'signalbox/github';
import { afterEach, expect, it } from 'vitest';
import { stage, WORKER } from './stage.ts';

const PROGRAM = fileURLToPath(new URL('programs/memory-server.mjs', import.meta.url));
const children: ChildProcess[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }
});

/** On a busy machine, to start it may take longer than anybody should wait for a hint. */
const PATIENT_MS = 300_000;

async function overHttp(): Promise<MemoryServer> {
  const child = spawn(process.execPath, [PROGRAM, 'http'], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  return { url: `http://127.0.0.1:${Number(port)}/mcp`, timeoutMs: PATIENT_MS };
}

it.each([
  ['a command', () => Promise.resolve<MemoryServer>({ command: [process.execPath, PROGRAM], timeoutMs: PATIENT_MS })],
  ['a URL', overHttp],
] as const)('a memory service, named by %s, keeps the lock until it is released', async (_, server) => {
  const { manager } = stage();
  const debug: string[] = [];
  const locks = manager({ cache: memoryCache(await server()), onDebug: (line) => void debug.push(line) });
  expect(await locks.acquireLock(1, WORKER)).toMatchObject({ success: true });
  expect(await locks.getLockFromMemory(1)).toMatchObject({ issue: 1, token: 1, lock: { worker_id: 'worker:1' } });
  await locks.releaseLock(1, 'worker:1');
  expect(await locks.getLockFromMemory(1)).toBeNull();
  await locks.close();
  expect(debug).toEqual([]);
});

it('a memory service that is away costs a debug line, and is asked again the next time', async () => {
  const { manager } = stage();
  const debug: string[] = [];
  const command = [process.execPath, '-e', 'process.exit(1)'] as const;
  const locks = manager({ cache: memoryCache({ command }), onDebug: (line) => void debug.push(line) });
  expect(await locks.acquireLock(1, WORKER)).toMatchObject({ success: true });
  expect(await locks.getLockFromMemory(1)).toBeNull();
  await locks.close();
  expect(debug).toHaveLength(3);
  expect(debug[0]).toContain('the lock cache cannot be written');
});
