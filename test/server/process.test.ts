// Servers as their operators run them: processes that are killed, on a port that every user of the machine reaches.

import { copyFileSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Scratch, signalbox, type Started, startProgram } from '../support/cli.ts';
import { root } from '../house/sources.ts';
import { eventsOf, type Sent } from '../support/server.ts';
import { inFile, newStoreOf, type NewStore, stores } from '../support/stores.ts';
import { NOBODY, signalboxAs, startAs, whyNoOthers } from '../support/users.ts';
import { makeCertificates } from './certificates.ts';

interface Running {
  readonly started: Started;
  readonly url: string;
  readonly token: string;
}

let scratch: Scratch;
let running: Started[];
let newStore: NewStore = inFile;

beforeEach(() => {
  scratch = new Scratch(newStore);
  running = [];
});
afterEach(async () => {
  for (const { child } of running) child.kill('SIGKILL');
  await Promise.all(running.map(({ ended }) => ended));
  scratch.remove();
});

async function serve(...args: readonly string[]): Promise<Running> {
  const started = scratch.start('serve', '--port', '0', '--json', ...args);
  running.push(started);
  let text = '';
  started.child.stdout?.on('data', (data: string) => (text += data));
  await started.printed('"url"');
  const { url } = JSON.parse(text) as { url: string };
  const { stdout } = await scratch.run('token', 'local');
  return { started, url, token: stdout.trim() };
}

async function ask<T>(
  { url, token }: Running,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; body: T }> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const response = await fetch(url + path, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as T };
}

describe.each(stores)('a server that is killed, on $on', ({ kind }) => {
  const own = newStoreOf(kind);
  beforeAll(() => {
    newStore = own;
  });
  afterAll(() => {
    newStore = inFile;
  });

  it('loses no ticket, claim, member or event: clients go on at another one, without a gap or a repeat', async () => {
    const [one, two] = [await serve(), await serve()];
    const held = await ask<{ token: number }>(one, 'POST', '/v1/locks/main/acquire', { holder: 'a', ttlMs: 600_000 });
    const first = await ask<{ ticket: string }>(one, 'POST', '/v1/locks/main/acquire', {
      holder: 'b',
      waitMs: 0,
      ttlMs: 600_000,
    });
    const second = await ask<{ ticket: string }>(one, 'POST', '/v1/locks/main/acquire', {
      holder: 'c',
      waitMs: 0,
      ttlMs: 600_000,
    });
    const seen: Sent[] = [];
    let isBroken = false;
    const stream = await fetch(`${one.url}/v1/events?pattern=lock:*`, {
      headers: { Authorization: `Bearer ${one.token}` },
    });
    const reading = (async () => {
      for await (const event of eventsOf(stream)) seen.push(event);
    })().catch(() => (isBroken = true));
    for (let n = 0; n < 5; n++) await ask(two, 'POST', `/v1/locks/n-${n}/acquire`, { holder: 'a' });
    await ask(two, 'POST', '/v1/tasks', { id: 'build' });
    const work = { holder: 'w', ttlMs: 600_000 };
    const claim = await ask<{ token: number }>(one, 'POST', '/v1/tasks/build/claim', work);
    const slot = { holder: 'a', capacity: 1, ttlMs: 600_000 };
    const slots = await ask<{ token: number }>(one, 'POST', '/v1/semaphores/gpu/acquire', slot);
    const queued = { ...slot, holder: 'b', waitMs: 0 };
    const place = await ask<{ ticket: string }>(one, 'POST', '/v1/semaphores/gpu/acquire', queued);
    const member = { id: 'm', ttlMs: 600_000 };
    const joined = await ask<{ incarnation: number }>(one, 'POST', '/v1/members', member);
    const guard = { condition: { taskDone: 'build' }, waitMs: 45_000 };
    const watching = ask(one, 'POST', '/v1/guards/check', guard).catch(() => 'cut off');
    // Waits at the first server when that is killed.
    const waiting = ask(one, 'POST', '/v1/locks/main/acquire', {
      holder: 'b',
      ticket: first.body.ticket,
      waitMs: 45_000,
    }).catch(() => 'cut off');
    await expect.poll(() => seen.length).toBeGreaterThan(2);
    one.started.child.kill('SIGKILL');
    expect([await waiting, await watching]).toEqual(['cut off', 'cut off']);
    await reading;
    expect(isBroken).toBe(true);
    for (let n = 5; n < 10; n++) await ask(two, 'POST', `/v1/locks/n-${n}/acquire`, { holder: 'a' });
    const last = seen.at(-1)?.id ?? '';
    const resumed = await fetch(`${two.url}/v1/events?pattern=lock:*`, {
      headers: { Authorization: `Bearer ${two.token}`, 'Last-Event-ID': last },
    });
    for await (const event of eventsOf(resumed)) {
      if (event.event !== 'open') seen.push(event);
      if (event.data.resource === 'lock/n-9') break;
    }
    const acquired = seen.filter(({ event }) => event === 'lock:acquired').map(({ data }) => data.resource as string);
    expect(acquired).toEqual(Array.from({ length: 10 }, (_, n) => `lock/n-${n}`));
    // The queue is as it was.
    const still = await ask<{ position: number }>(two, 'POST', '/v1/locks/main/acquire', {
      holder: 'c',
      ticket: second.body.ticket,
      waitMs: 0,
    });
    expect([still.status, still.body.position]).toEqual([202, 2]);
    const next = ask<{ token: number }>(two, 'POST', '/v1/locks/main/acquire', {
      holder: 'b',
      ticket: first.body.ticket,
      waitMs: 45_000,
    });
    await ask(two, 'POST', '/v1/locks/main/release', { holder: 'a', token: held.body.token });
    expect(await next).toMatchObject({ status: 200, body: { holder: 'b' } });
    // So are the claim, the slots and the member; and a guard that is asked again hears how it ends.
    const { token } = claim.body;
    expect((await ask(two, 'POST', '/v1/tasks/build/renew', { token })).body).toMatchObject({ outcome: 'refreshed' });
    const done = ask<{ passed: boolean }>(two, 'POST', '/v1/guards/check', guard);
    expect((await ask(two, 'POST', '/v1/tasks/build/complete', { token })).status).toBe(200);
    expect((await done).body.passed).toBe(true);
    const { ticket } = place.body;
    const collect = ask(two, 'POST', '/v1/semaphores/gpu/acquire', { holder: 'b', ticket, waitMs: 45_000 });
    await ask(two, 'POST', '/v1/semaphores/gpu/release', { holder: 'a', token: slots.body.token });
    expect(await collect).toMatchObject({ status: 200, body: { holder: 'b', slots: [0] } });
    const { incarnation } = joined.body;
    expect((await ask(two, 'POST', '/v1/members/m/renew', { incarnation })).body).toMatchObject({
      outcome: 'refreshed',
    });
    expect((await ask(two, 'POST', '/v1/members/m/leave', { incarnation })).status).toBe(200);
  });
});

describe('the local token', () => {
  it('is made once, in a file that only its user can read, and tokens are managed on the command line', async () => {
    expect((await scratch.run('token', 'local')).code).toBe(1);
    const [one, two] = await Promise.all([serve(), serve()]);
    expect(one.token).toBe(two.token);
    const { file } = await scratch.json<{ file: string }>('token', 'local');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const { stdout } = await scratch.run(
      'token',
      'create',
      'ci',
      '--role',
      'worker',
      '--holder',
      'job:*',
      '--expires',
      '90d',
    );
    const worker = { ...one, token: stdout.trim() };
    expect((await ask(worker, 'GET', '/v1/token')).body).toMatchObject({
      role: 'worker',
      holders: ['job:*'],
      name: 'ci',
    });
    expect((await ask(worker, 'POST', '/v1/locks/x/acquire', { holder: 'user:x' })).status).toBe(403);
    const listed = await scratch.run('token', 'list');
    expect(listed.stdout).toMatch(/ci +worker +job:\*/);
    expect(listed.stdout).not.toContain(stdout.trim().slice('sbx_0123456789abcdef_'.length));
    const { tokens } = await scratch.json<{ tokens: { id: string }[] }>('token', 'list');
    expect((await scratch.run('token', 'revoke', tokens[0]?.id ?? '')).code).toBe(0);
    await expect.poll(async () => (await ask(worker, 'GET', '/v1/token')).status).toBe(401);
    expect((await scratch.run('token', 'revoke', tokens[0]?.id ?? '')).code).toBe(1);
    one.started.child.kill('SIGTERM');
    const ended = await one.started.ended;
    expect([ended.code, ended.stderr]).toEqual([0, '']);
    expect(ended.stdout).not.toContain(one.token);
  });

  it.skipIf(whyNoOthers() !== undefined)(
    'is of no use to another user of the machine, who reaches the port',
    async () => {
      const one = await serve();
      const reads = await signalboxAs(NOBODY, ['token', 'local', '--store', scratch.store]).ended;
      expect(reads.code).not.toBe(0);
      expect(reads.stdout + reads.stderr).not.toContain(one.token);
      const asks = `fetch('${one.url}/v1/who').then(async (r) => console.log(r.status, await r.text()))`;
      const { stdout } = await startAs(NOBODY, process.execPath, ['-e', asks]).ended;
      expect(stdout).toMatch(/^401 .*"code":"unauthenticated"/);
    },
  );
});

describe('TLS', () => {
  it('uses new certificate files as soon as they are there, and keeps the old ones if the new ones are broken', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'signalbox-tls-'));
    try {
      const [old, renewed] = [makeCertificates(dir, 'old'), makeCertificates(dir, 'renewed')];
      const [cert, key] = [join(dir, 'tls.crt'), join(dir, 'tls.key')];
      copyFileSync(old.cert, cert);
      copyFileSync(old.key, key);
      const one = await serve('--cert', cert, '--key', key);
      expect(one.url).toMatch(/^https:/);
      const subject = (): Promise<string> =>
        new Promise((resolve, reject) => {
          const { hostname, port } = new URL(one.url);
          const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
            resolve(String(socket.getPeerCertificate().subject.CN));
            socket.destroy();
          }).on('error', reject);
        });
      expect(await subject()).toBe('old');
      writeFileSync(cert, 'broken');
      await one.started.complained('certificate');
      expect(await subject()).toBe('old');
      copyFileSync(renewed.key, key);
      copyFileSync(renewed.cert, cert);
      await expect.poll(subject, { interval: 200 }).toBe('renewed');
      const status = await new Promise((resolve, reject) =>
        request(
          `${one.url}/v1/who`,
          { rejectUnauthorized: false, headers: { Authorization: `Bearer ${one.token}` } },
          (response) => resolve(response.statusCode),
        )
          .on('error', reject)
          .end(),
      );
      expect(status).toBe(200);
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });
});

describe('a worker in Python', () => {
  it('takes part with nothing but its standard library', async () => {
    const one = await serve();
    for (const id of ['sum-1', 'sum-2']) await ask(one, 'POST', '/v1/tasks', { id, data: { numbers: [1, 2, 3] } });
    const env = { SIGNALBOX_SERVER: one.url, SIGNALBOX_SERVER_TOKEN: one.token };
    const { code, stdout, stderr } = await startProgram(
      'python3',
      [join(root, 'examples', 'worker.py'), '--until-idle'],
      { env },
    ).ended;
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain('sum-2: 6');
    for (const id of ['sum-1', 'sum-2']) {
      expect((await ask(one, 'GET', `/v1/tasks/${id}`)).body).toMatchObject({ status: 'complete', result: { sum: 6 } });
    }
    expect((await ask<{ isFree: boolean }>(one, 'GET', '/v1/locks/report')).body.isFree).toBe(true);
  });
});

describe('signalbox serve', () => {
  it('warns on other addresses than loopback, without TLS, that tokens travel in the clear', async () => {
    const { cert, key } = makeCertificates(scratch.dir, 'own');
    const said = async (...args: readonly string[]): Promise<string> => {
      const { started } = await serve(...args);
      started.child.kill('SIGTERM');
      return (await started.ended).stderr;
    };
    expect(await said('--host', '0.0.0.0')).toMatch(/^signalbox: warning: tokens travel in the clear .*\n$/);
    expect(await said('--host', '0.0.0.0', '--cert', cert, '--key', key)).toBe('');
    expect(await said()).toBe('');
  });

  it('says what is wrong with a port, a certificate or a store', async () => {
    expect(await scratch.run('serve', '--port', '99999')).toMatchObject({ code: 64 });
    expect(await scratch.run('serve', '--cert', 'x')).toMatchObject({ code: 64 });
    expect((await scratch.run('serve', '--port', '0', '--cert', 'no', '--key', 'no')).stderr).toContain(
      'certificate cannot be used',
    );
    expect((await signalbox(['serve', '--store', 'memory:'])).code).toBe(64);
  });
});
