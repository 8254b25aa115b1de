// Logs: one line of JSON for each thing that happened, silent unless asked for, and never with a secret in them.

import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Log, open, type Signalbox } from 'signalbox';
import { systemClock } from '../../src/clock.ts';
import { lineLog } from '../../src/runtime/log.ts';
import { logRequest } from '../../src/server/log.ts';
import { type RequestNote, serverOf } from '../../src/server/index.ts';
import { CLI, Scratch, signalbox, startProgram } from '../support/cli.ts';
import { LOCAL } from '../support/server.ts';

interface Line {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

function linesIn(text: string): Line[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);
}

function collecting(): { log: Log; lines: Line[] } {
  const lines: Line[] = [];
  const log = lineLog('debug', systemClock, (line) => void lines.push(JSON.parse(line) as Line)) as Log;
  return { log, lines };
}

let scratch: Scratch;
beforeAll(() => {
  scratch = new Scratch();
});
afterAll(() => scratch.remove());

describe('the log of the library', () => {
  it('enters each step with its outcome and its time, and what happened to the session', async () => {
    const { log, lines } = collecting();
    const box = await open('memory:', { log });
    await (await box.lock('main').acquire({ holder: 'me' })).release();
    await box.close();
    const { level, ms, ...about } = lines.find(({ msg }) => msg === 'hold') ?? { level: '', msg: '' };
    expect(about).toMatchObject({ name: 'signalbox', resource: 'lock/main', holder: 'me', outcome: 'released' });
    expect([level, typeof ms]).toEqual(['debug', 'number']);
    expect(lines.map(({ msg }) => msg)).toEqual(['opened the store', 'acquire', 'hold', 'the session ended']);
  });

  it('goes to a logger that the program brings, and warns of a hold that was lost', async () => {
    const { log, lines } = collecting();
    await using box = await open('memory:', { log });
    await box.lock('main').acquire();
    await box.lock('main').break({ holder: 'admin', reason: 'hunter2' });
    expect(lines.filter(({ level }) => level === 'warn')).toMatchObject([{ msg: 'hold', outcome: 'forced' }]);
    expect(JSON.stringify(lines)).not.toContain('hunter2');
    await expect(open('memory:', { log: 7 as never })).rejects.toThrow('log is 7; expected an object');
  });

  it('leaves out what is less important than its level', () => {
    const lines: string[] = [];
    const log = lineLog('warn', systemClock, (line) => void lines.push(line));
    log?.debug({}, 'a');
    log?.info({}, 'b');
    log?.warn({}, 'c');
    log?.error({}, 'd');
    expect(lines.map((line) => (JSON.parse(line) as Line).msg)).toEqual(['c', 'd']);
    expect(lineLog('silent', systemClock)).toBeUndefined();
  });

  it('hides passwords, tokens and headers wherever they are in a field', () => {
    const { log, lines } = collecting();
    const secrets = [
      'etcd://me:hunter2@host:2379',
      'sbx_0123456789abcdef_hunter2-hunter2_hunter2',
      'ghp_hunter2hunter2',
      'github_pat_hunter2',
      'Authorization: Bearer hunter2-hunter2',
    ];
    log.info({ one: secrets[0], several: secrets, inside: { deep: { of: secrets.join(' ') } } }, 'x');
    expect(JSON.stringify(lines)).not.toContain('hunter2');
    expect(JSON.stringify(lines)).toContain('etcd://me@host:2379');
  });
});

describe('SIGNALBOX_LOG', () => {
  it('makes the command line log on stderr; without it, nothing is logged', async () => {
    const run = (level?: string) =>
      signalbox(['run', '--lock', 'main', '--', 'true'], {
        env: { SIGNALBOX_URL: scratch.store, SIGNALBOX_LOG: level },
        cwd: scratch.dir,
      });
    const [loud, silent, wrong] = await Promise.all([run('debug'), run(), run('loud')]);
    expect([silent.code, silent.stderr]).toEqual([0, '']);
    expect(loud.code).toBe(0);
    expect(linesIn(loud.stderr).map(({ msg }) => msg)).toEqual(expect.arrayContaining(['opened the store', 'hold']));
    expect(wrong.code).toBe(64);
    expect(wrong.stderr).toContain('SIGNALBOX_LOG is "loud"; expected debug, info, warn, error, silent');
  });
});

describe('the log of a server', () => {
  it('is kept off stdout by mcp, which talks to its client there', async () => {
    const { code, stdout, stderr } = await signalbox(['mcp'], {
      env: { SIGNALBOX_URL: scratch.store, SIGNALBOX_LOG: 'debug' },
      cwd: scratch.dir,
    });
    expect([code, stdout]).toEqual([0, '']);
    expect(linesIn(stderr)).toMatchObject([{ name: 'signalbox-mcp', msg: 'opened the store' }]);
  });

  it('has every request of a varied session, spans for an SDK that its operator loads, and no secret', async () => {
    const sdk = join(import.meta.dirname, 'programs', 'sdk.mjs');
    const server = startProgram(process.execPath, [CLI, 'serve', '--port', '0', '--json', '--log', 'debug'], {
      env: { SIGNALBOX_URL: scratch.store, NODE_OPTIONS: `--import ${sdk}` },
      cwd: scratch.dir,
    });
    let printed = '';
    server.child.stdout?.on('data', (text: string) => (printed += text));
    await server.printed('"url"');
    const { url } = JSON.parse(printed) as { url: string };
    const local = (await scratch.run('token', 'local')).stdout.trim();
    const ask = async (path: string, body?: unknown, token = local): Promise<{ status: number; body: unknown }> => {
      const response = await fetch(url + path, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      return { status: response.status, body: text.startsWith('{') ? (JSON.parse(text) as unknown) : text };
    };
    const made = (await ask('/v1/tokens', { name: 'ci', role: 'worker' })).body as { secret: string };
    const secret = 'hunter2';
    const held = await ask(
      '/v1/locks/main/acquire',
      { holder: 'a', reason: secret, metadata: { secret } },
      made.secret,
    );
    expect(held.status).toBe(200);
    const { token } = held.body as { token: number };
    expect((await ask('/v1/locks/main/acquire', { holder: 'b', wait: false })).status).toBe(409);
    expect((await ask('/v1/locks/main/break', { reason: secret })).status).toBe(200);
    expect((await ask('/v1/locks/main/release', { holder: 'a', token })).status).toBe(409);
    expect((await ask('/v1/tasks', { id: 't', data: { secret } })).status).toBe(201);
    const claimed = (await ask('/v1/tasks/t/claim', { holder: 'a' })).body as { token: number };
    const ended = { holder: 'a', token: claimed.token, result: { secret } };
    expect((await ask('/v1/tasks/t/complete', ended)).status).toBe(200);
    expect((await ask('/v1/locks/main/acquire', `{"holder": "${secret}" nonsense`)).status).toBe(400);
    expect((await ask(`/v1/locks/${secret}/acquire/../x?token=${secret}`)).status).toBe(404);
    expect((await ask('/v1/who', undefined, `sbx_0123456789abcdef_${secret}`)).status).toBe(401);
    expect((await ask('/metrics')).status).toBe(200);
    server.child.kill('SIGTERM');
    const { code, stderr } = await server.ended;
    expect(code).toBe(0);
    const all = linesIn(stderr);
    const spans = all.filter((line) => 'span' in line);
    const lines = all.filter((line) => !('span' in line));
    for (const line of lines) {
      expect(line).toMatchObject({ level: expect.any(String), time: expect.any(String), pid: server.child.pid });
      expect(line['name']).toBe('signalbox-serve');
    }
    const requests = lines.filter(({ msg }) => msg === 'request').map(({ operation, status }) => [operation, status]);
    expect(requests).toEqual(
      expect.arrayContaining([
        ['lock.acquire', 200],
        ['lock.acquire', 409],
        ['lock.acquire', 400],
        ['task.complete', 200],
        ['who', 401],
      ]),
    );
    expect(spans.map((line) => line['span'])).toContain('signalbox acquire');
    for (const hidden of [secret, local, made.secret, made.secret.slice(-43)]) {
      expect(stderr).not.toContain(hidden);
    }
  });

  it('names the place of a bug, and not its message, which may contain anything', async () => {
    await using box = await open('memory:');
    const broken = Object.create(box, {
      survey: { value: () => Promise.reject(new TypeError('cannot read hunter2')) },
      health: { value: () => box.health() },
    }) as Signalbox;
    const notes: RequestNote[] = [];
    const server = serverOf(broken, { localToken: LOCAL, onRequest: (note) => void notes.push(note) });
    const headers = { Authorization: `Bearer ${LOCAL}` };
    expect((await server.fetch(new Request('http://127.0.0.1/v1/who', { headers }))).status).toBe(500);
    const { log, lines } = collecting();
    logRequest(log, notes[0] as RequestNote);
    expect(lines).toMatchObject([{ level: 'error', operation: 'who', status: 500, problem: 'internal' }]);
    expect(JSON.stringify(lines)).toContain('log.test.ts');
    expect(JSON.stringify(lines)).not.toContain('hunter2');
    server.stop();
  });
});
