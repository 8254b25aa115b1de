/**
 * What does a server cost, and does it lose anything under load?
 *
 *     acquire+release   two requests over HTTP, the library directly on a file, and two requests to a bare hono route: the floor
 *     load              200 readers of events, each of its own lock, while 500 requests/s acquire and release these locks: how long
 *                       they take, how much of a core the server uses for each, and whether a reader misses or repeats anything.
 *                       What the server keeps in memory is looked at before, three times during, and after the load, each time after
 *                       a collection; between the middle and the end it should not grow. On a file and on etcd. For 10 s;
 *                       SIGNALBOX_LONG=1 for 60 s.
 *
 * The load is made with Node's own client of HTTP, which costs a third of `fetch`: it shares the machine with the server. Where
 * others use the machine too, the CPU time of the server says more than how many requests there were.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
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
  // Its first thousand requests cost a server twice as much: V8 has not compiled what they run yet.
  for (let n = 0; n < (isQuick ? 30 : 500); n++) await (await lock.acquire({ holder: 'bench' })).release();
  const before = cpuOf(server);
  let requests = 0;
  const times = await inTurns(
    {
      http: pairs(async () => {
        requests += 2;
        return (await lock.acquire({ holder: 'bench' })).release();
      }),
      // As any program can do it, without an Idempotency-Key: the client sends one with every acquire.
      plain: pairs(async () => {
        requests += 2;
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
    `acquire+release: ${told.join(' | ')} | http is ${ratio('library')} × library, ${ratio('floor')} × floor | ` +
      `CPU of the server ${((cpuOf(server) - before) / requests).toFixed(2)} ms/request`,
  );
  await remote.close();
  await box.close();
  await stopped(server, floor);
}

async function load(name, store) {
  const server = await serve(store);
  const agent = new Agent({ keepAlive: true });
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
  const memory = [await memoryOf(server)];
  let answered = 0;
  const cpuBefore = cpuOf(server);
  const running = [];
  const begun = performance.now();
  const pairsPerSecond = PER_SECOND / 2;
  const pairs = SECONDS * pairsPerSecond;
  for (let n = 0; n < pairs; n++) {
    const due = begun + (n * 1000) / pairsPerSecond;
    while (performance.now() < due) await new Promise((resolve) => setTimeout(resolve, 1));
    const looked = async () => {
      // By what was answered, and not by time: a server that lags behind has done little at half of the time.
      if (++answered % Math.floor(pairs / 4) === 0 && answered < pairs) memory.push(await memoryOf(server));
    };
    running.push(pair(server, agent, n, done, took).then(looked));
  }
  await Promise.all(running);
  const seconds = (performance.now() - begun) / 1000;
  const cpu = ((cpuOf(server) - cpuBefore) / (running.length * 2)).toFixed(2);
  for (let n = 0; n < 500 && seen.some((tokens, at) => tokens.length < done[at].length); n++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const wrong = seen.filter((tokens, at) => tokens.join() !== done[at].join()).length;
  memory.push(await memoryOf(server));
  const ms = (part) => quantile(took, part).toFixed(1);
  console.log(
    `load, ${name}: ${READERS} readers, ${Math.round((running.length * 2) / seconds)} requests/s for ${seconds.toFixed(0)} s: ` +
      `p50 ${ms(0.5)} ms, p99 ${ms(0.99)} ms, most ${ms(1)} ms; ${seen.flat().length} events, ` +
      `${wrong === 0 ? 'none lost, repeated or out of order' : `WRONG at ${wrong} readers`}; ` +
      `${memoryTold(memory)}; CPU of the server ${cpu} ms/request`,
  );
  if (wrong > 0) process.exitCode = 1;
  await box.close();
  agent.destroy();
  await stopped(server);
}

/** With an Idempotency-Key on each request, as the client sends them. */
function pair(server, agent, at, done, took) {
  const n = at % READERS;
  const turn = (turns.get(n) ?? Promise.resolve()).then(async () => {
    const holder = `reader:${n}`;
    const ask = (what, body) => timed(took, () => asked(server, agent, `load-${n}/${what}`, `${at}-${what}`, body));
    const { token } = await ask('acquire', { holder, ttlMs: 30_000, waitMs: 0 });
    done[n].push(`lock:acquired ${token}`);
    await ask('release', { holder, token });
    done[n].push(`lock:released ${token}`);
  });
  turns.set(n, turn);
  return turn;
}

function asked(server, agent, path, key, body) {
  return new Promise((resolve, reject) => {
    const headers = {
      Authorization: `Bearer ${server.token}`,
      'Content-Type': 'application/json',
      'Idempotency-Key': key,
    };
    const sending = request(`${server.url}/v1/locks/${path}`, { method: 'POST', agent, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part) => (text += part));
      response.on('error', reject).on('end', () => {
        if (response.statusCode === 200) resolve(JSON.parse(text));
        else reject(new Error(`${path} was answered with ${response.statusCode}: ${text}`));
      });
    });
    sending.on('error', reject).end(JSON.stringify(body));
  });
}

async function timed(took, work) {
  const since = performance.now();
  const result = await work();
  took.push(performance.now() - since);
  return result;
}

async function serve(store) {
  const env = { SIGNALBOX_URL: store, XDG_STATE_HOME: directory };
  const measured = ['--expose-gc', '--import', new URL('measure/heap.mjs', import.meta.url).href];
  const server = await started([...measured, CLI, 'serve', '--port', '0', '--json'], env);
  return { ...server, token: readFileSync(server.tokenFile, 'utf8').trim() };
}

async function started(args, env) {
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
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

/** Milliseconds of CPU that it has used; where the system tells it. */
function cpuOf({ child }) {
  try {
    const [, rest = ''] = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ');
    const [user = 0, system = 0] = rest.split(' ').slice(11, 13).map(Number);
    return (user + system) * 10;
  } catch {
    return Number.NaN;
  }
}

/** Bytes that are in use after a collection, and those that the system counts. */
async function memoryOf({ child }) {
  const told = once(child, 'message');
  child.send('memory');
  const [memory] = await told;
  return memory;
}

/** It fills its caches first, so only what is added after the middle counts as growth: a tenth may be chance. */
function memoryTold(all) {
  const megabytes = (figure) => all.map((one) => (one[figure] / 1024 / 1024).toFixed(0)).join(' → ');
  const middle = all[Math.floor(all.length / 2)].heap;
  const end = all.at(-1).heap;
  const verdict =
    end <= middle * 1.1 ? 'flat' : `GREW by ${((100 * (end - middle)) / middle).toFixed(0)} % since the middle`;
  return `memory in use ${megabytes('heap')} MB (${verdict}), of the system ${megabytes('rss')} MB`;
}
