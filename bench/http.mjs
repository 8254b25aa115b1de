/**
 * What does a server cost, and does it lose anything under load?
 *
 *     acquire+release   two requests over HTTP, the library directly on a file, and two requests to a bare hono route: the floor
 *     load              200 readers of events, each of its own lock, while 500 requests/s acquire and release these locks: how long
 *                       they take, what the server keeps, and whether a reader misses or repeats anything. On a file and on etcd.
 *                       For 10 s; SIGNALBOX_LONG=1 for 60 s.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { open } from 'signalbox';
import { connect } from 'signalbox/client';
import { startEtcd } from './measure/etcd.mjs';
import { machine } from './measure/machine.mjs';
import { inTurns, median, quantile } from './measure/rounds.mjs';

const isQuick = process.argv.includes('--quick');
const SECONDS = process.env.SIGNALBOX_LONG === '1' ? 60 : isQuick ? 3 : 10;
const READERS = 200;
const PER_SECOND = 500;
const CLI = fileURLToPath(new URL('../dist/bin/signalbox.cjs', import.meta.url));

/** Requests for one lock come one after the other, so that their order is known. */
const turns = new Map();

console.log(machine());
const directory = mkdtempSync(join(tmpdir(), 'signalbox-bench-'));
process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
await cost();
await load('file', `file:${join(directory, 'load')}`);
const etcd = await startEtcd();
if (etcd === undefined) console.log('load, etcd: there is no etcd to start');
else {
  await load('etcd', etcd.url);
  await etcd.stop();
}

async function cost() {
  const server = await serve(`file:${join(directory, 'served')}`);
  const floor = await started([fileURLToPath(new URL('measure/http-floor.mjs', import.meta.url))], {});
  const box = await open(`file:${join(directory, 'direct')}`);
  const remote = connect(server.url, { token: server.token });
  const lock = remote.lock('main');
  const own = box.lock('main');
  const headers = { Authorization: `Bearer ${server.token}`, 'Content-Type': 'application/json' };
  const post = async (what, body) => {
    const url = `${server.url}/v1/locks/plain/${what}`;
    return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).json();
  };
  const bare = () =>
    fetch(`${floor.url}/v1/locks/main`, { method: 'POST', body: '{}' }).then((answer) => answer.json());
  const pairs = (work) => async (operations) => {
    for (let n = 0; n < operations; n++) await work();
  };
  const times = await inTurns(
    {
      http: pairs(async () => (await lock.acquire({ holder: 'bench' })).release()),
      // As any program can do it, without an Idempotency-Key: the client sends one with every acquire.
      plain: pairs(async () => {
        const { token } = await post('acquire', { holder: 'bench', wait: false });
        await post('release', { holder: 'bench', token });
      }),
      library: pairs(async () => (await own.acquire({ holder: 'bench' })).release()),
      floor: pairs(async () => {
        await bare();
        await bare();
      }),
    },
    { rounds: isQuick ? 3 : 7, operations: isQuick ? 30 : 100 },
  );
  const told = Object.entries(times).map(([name, all]) => `${name} ${(median(all) / 1e6).toFixed(2)} ms`);
  const ratio = (name) => (median(times.http) / median(times[name])).toFixed(1);
  console.log(
    `acquire+release: ${told.join(' | ')} | http is ${ratio('library')} × library, ${ratio('floor')} × floor`,
  );
  await remote.close();
  await box.close();
  await stopped(server, floor);
}

async function load(name, store) {
  const server = await serve(store);
  const box = connect(server.url, { token: server.token });
  const seen = Array.from({ length: READERS }, () => []);
  const isOpen = seen.map(async (tokens, n) => {
    const events = box.events('lock:*', { resources: [`lock/load-${n}`] });
    const read = async () => {
      for await (const { type, token } of events) {
        if (type === 'lock:acquired' || type === 'lock:released') tokens.push(`${type} ${token}`);
        if (type === 'resync') tokens.push(type);
      }
    };
    void read().catch(() => undefined);
    while (events.place === undefined) await new Promise((resolve) => setTimeout(resolve, 20));
  });
  await Promise.all(isOpen);
  turns.clear();
  const done = Array.from({ length: READERS }, () => []);
  const took = [];
  const before = memoryOf(server);
  const running = [];
  const begun = performance.now();
  const pairsPerSecond = PER_SECOND / 2;
  for (let n = 0; n < SECONDS * pairsPerSecond; n++) {
    const due = begun + (n * 1000) / pairsPerSecond;
    while (performance.now() < due) await new Promise((resolve) => setTimeout(resolve, 1));
    running.push(pair(box, n % READERS, done, took));
  }
  await Promise.all(running);
  const seconds = (performance.now() - begun) / 1000;
  for (let n = 0; n < 500 && seen.some((tokens, at) => tokens.length < done[at].length); n++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const wrong = seen.filter((tokens, at) => tokens.join() !== done[at].join()).length;
  const after = memoryOf(server);
  const ms = (part) => quantile(took, part).toFixed(1);
  console.log(
    `load, ${name}: ${READERS} readers, ${Math.round((running.length * 2) / seconds)} requests/s for ${seconds.toFixed(0)} s: ` +
      `p50 ${ms(0.5)} ms, p99 ${ms(0.99)} ms, most ${ms(1)} ms; ${seen.flat().length} events, ` +
      `${wrong === 0 ? 'none lost, repeated or out of order' : `WRONG at ${wrong} readers`}; ` +
      `memory ${before} → ${after} MB`,
  );
  if (wrong > 0) process.exitCode = 1;
  await box.close();
  await stopped(server);
}

function pair(box, n, done, took) {
  const turn = (turns.get(n) ?? Promise.resolve()).then(async () => {
    const lock = box.lock(`load-${n}`);
    const { token } = await timed(took, () => lock.acquireDetached({ holder: `reader:${n}` }));
    done[n].push(`lock:acquired ${token}`);
    await timed(took, () => lock.release({ holder: `reader:${n}`, token }));
    done[n].push(`lock:released ${token}`);
  });
  turns.set(n, turn);
  return turn;
}

async function timed(took, work) {
  const since = performance.now();
  const result = await work();
  took.push(performance.now() - since);
  return result;
}

async function serve(store) {
  const env = { SIGNALBOX_URL: store, XDG_STATE_HOME: directory };
  const server = await started([CLI, 'serve', '--port', '0', '--json'], env);
  return { ...server, token: readFileSync(server.tokenFile, 'utf8').trim() };
}

async function started(args, env) {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  process.once('exit', () => child.kill('SIGKILL'));
  child.stdout.setEncoding('utf8');
  let text = '';
  while (!text.includes('\n')) text += String(await once(child.stdout, 'data'));
  return { ...JSON.parse(text), child };
}

async function stopped(...servers) {
  for (const { child } of servers) {
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  }
}

/** Where the system tells it. */
function memoryOf({ child }) {
  try {
    const [, kilobytes = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
    return Math.round(Number(kilobytes) / 1024);
  } catch {
    return '?';
  }
}
