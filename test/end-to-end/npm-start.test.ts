// `npm start` and `npm run demo`, as somebody tries them who has just cloned the repository.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { signalbox } from '../support/cli.ts';
import { root } from '../house/sources.ts';
import { until } from '../support/until.ts';
import { built, isAlive, Place, type Started } from '../support/run-processes.ts';

let place: Place;
beforeAll(built);
beforeEach(() => void (place = new Place()));
afterEach(() => place.leave());

const script = (name: string, env: NodeJS.ProcessEnv, ...args: readonly string[]): Started =>
  place.start(process.execPath, [join(root, 'scripts', `${name}.mjs`), ...args], { stdin: '', env });

const addressOf = async (started: Started): Promise<string> => {
  const [, url = ''] = await started.prints(/^ {2}page +(http:\/\/127\.0\.0\.1:\d+)\//m);
  return url;
};

const isUp = (url: string): Promise<boolean> =>
  fetch(`${url}/healthz`).then(
    ({ ok }) => ok,
    () => false,
  );

describe('npm start', () => {
  it('serves the store of the clone with a witness, says where it is, and stays until Ctrl-C', async () => {
    execFileSync('git', ['init', '-q', place.directory]);
    // So that the clone of the tests themselves stays as it is.
    const env = { SIGNALBOX_URL: '', GIT_DIR: place.path('.git') };
    const server = script('start', env, '--port', '0');
    const url = await addressOf(server);
    const store = `file:${place.path('.git')}/signalbox`;
    await server.prints(new RegExp(`^ {2}store +${store}\\n`, 'm'));
    await server.prints(/npm run demo/);
    expect(await isUp(url)).toBe(true);
    const { stdout: token } = await signalbox(['token', 'local', '--store', store]);
    expect(server.stdout).not.toContain(token.trim());
    const headers = { Authorization: `Bearer ${token.trim()}` };
    expect((await fetch(`${url}/v1/status`, { headers })).status).toBe(200);
    const held = await signalbox(['lock', 'acquire', 'main', '--holder', 'me', '--store', store]);
    expect(held.code).toBe(0);
    expect((await signalbox(['witness', 'tail', '--no-follow', '--store', store])).stdout).toContain('lock/main');
    server.kill('SIGINT');
    expect(await server.ended).toMatchObject({ code: 0, stderr: '' });
    expect(server.stdout).toContain('The server has stopped');
    expect(await isUp(url)).toBe(false);
  });

  it('stops its server if a supervisor ends npm: the shell in between does not pass the signal on', async () => {
    const command = `"$0" ${join(root, 'scripts', 'start.mjs')} --port 0; true`;
    const env = { npm_lifecycle_event: 'start' };
    const shell = place.start('sh', ['-c', command, process.execPath], { stdin: '', env });
    const url = await addressOf(shell);
    shell.kill('SIGTERM');
    await until(async () => !(await isUp(url)));
  });

  it('takes the next port if another server has the usual one, and says so if the one it was given is taken', async () => {
    const [one, other] = [script('start', {}), script('start', {})];
    const urls = [await addressOf(one), await addressOf(other)];
    expect(new Set(urls).size).toBe(2);
    const taken = script('start', {}, '--port', new URL(urls[0] ?? '').port);
    const { code, stderr } = await taken.ended;
    expect(code).toBe(69);
    expect(stderr).toMatch(/^signalbox: cannot listen on 127\.0\.0\.1, port \d+: .*choose another one with --port/);
    for (const server of [one, other]) server.kill('SIGTERM');
    expect([(await one.ended).code, (await other.ended).code]).toEqual([0, 0]);
  });

  it.each(['start', 'demo'])('refuses what it does not know, before it does anything: %s', async (name) => {
    expect(await script(name, {}, '--nonsense').ended).toMatchObject({ code: 64, stdout: '' });
    expect((await script(name, {}, '--help').ended).stdout).toContain('Usage: npm');
  });
});

describe('npm run demo', () => {
  const childrenOf = (pid: number): readonly number[] =>
    readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);

  it.skipIf(!existsSync('/proc/self/task'))('lets everything happen, and leaves nothing behind', async () => {
    const demo = script('demo', { SIGNALBOX_URL: '', DEMO_PACE: '0.3' }, '--port', '0');
    const url = await addressOf(demo);
    const [, directory = ''] = await demo.prints(/^ {2}store +file:(.*)\/store, removed at the end$/m);
    const { stdout: token } = await signalbox(['token', 'local', '--store', `file:${directory}/store`]);
    const awaited = new Set([
      ...['lock:acquired', 'lock:queued', 'lock:released', 'lock:reclaimed', 'lock:deadlock'],
      ...['semaphore:acquired', 'semaphore:queued', 'task:published', 'task:claimed', 'task:completed'],
      ...['pipeline:started', 'pipeline:blocked', 'pipeline:resumed', 'pipeline:done', 'member:joined', 'member:left'],
    ]);
    const headers = { Authorization: `Bearer ${token.trim()}` };
    const { body } = await fetch(`${url}/v1/events?since=1`, { headers });
    let text = '';
    for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      for (const [, type = ''] of text.matchAll(/^event: (\S+)$/gm)) awaited.delete(type);
      if (awaited.size === 0) break;
    }
    expect([...awaited]).toEqual([]);
    await demo.prints(/kill -9 agent-1/);
    const children = childrenOf(demo.pid);
    expect(children.length).toBeGreaterThan(4);
    demo.kill('SIGINT');
    expect(await demo.ended).toMatchObject({ code: 0, stderr: '' });
    expect(children.filter(isAlive)).toEqual([]);
    expect(existsSync(directory)).toBe(false);
  });
});
