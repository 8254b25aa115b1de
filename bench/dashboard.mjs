/**
 * Does the dashboard stay smooth with 10,000 locks and 1,000 events/s, and does its memory stay flat?
 *
 *     page     first paint, and the time until live data is shown
 *     live     from the moment when a command line takes a lock to the painted row, before the load begins
 *     frames   the time between two frames on the list of locks, beside an empty page in the same browser at the same time: what
 *              that page misses too is the machine's. A long task keeps the page's own thread for over 50 ms
 *     heap     after a collection, every tenth of the time; frames are not counted while the browser collects
 *
 * For 2 minutes; SIGNALBOX_LONG=1 for 10, --quick for 20 s. It needs Chromium.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { open } from 'signalbox';
import { CLI, startServer } from '../scripts/serving.mjs';
import { machine } from './measure/machine.mjs';
import { quantile } from './measure/rounds.mjs';

const CHROMIUM = '/usr/bin/chromium';
const SECONDS = process.env.SIGNALBOX_LONG === '1' ? 600 : process.argv.includes('--quick') ? 20 : 120;
const LOCKS = 10_000;
const EVENTS_PER_SECOND = 1_000;
const COMMANDS = process.argv.includes('--quick') ? 10 : 40;
const LATE_MS = 50;

console.log(machine());
if (!existsSync(CHROMIUM)) {
  console.log(`dashboard: there is no ${CHROMIUM} to measure in`);
  process.exit(0);
}
const directory = mkdtempSync(join(tmpdir(), 'signalbox-bench-'));
process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
const store = `file:${join(directory, 'store')}`;
const box = await open(store);
for (let n = 0; n < LOCKS; n++)
  await (await box.lock(`area-${n % 100}/lock-${n}`).acquire({ holder: 'first' })).release();

const served = await startServer({ store, port: 0 });
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
const over = new AbortController();
try {
  await measure();
} finally {
  over.abort();
  await browser.close();
  served.child.kill('SIGTERM');
  await served.ended;
  await box.close();
}

async function measure() {
  const idle = await watched('about:blank');
  const page = await watched(`${served.link}&view=/locks`);
  await page.page.getByText('live', { exact: true }).waitFor();
  await page.page.locator('a[data-row]').first().waitFor();
  const shown = await page.page.evaluate(() => performance.now());
  const paint = await page.page.evaluate(
    () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
  );
  console.log(`page: first paint after ${paint.toFixed(0)} ms, live data within ${shown.toFixed(0)} ms`);
  tellLive(await commandsShown());
  for (const one of [page, idle]) await one.beginAgain();
  const load = loaded();
  const heap = [];
  for (let part = 0; part < 10; part++) {
    await new Promise((resolve) => setTimeout(resolve, (SECONDS * 1000) / 10));
    heap.push(await page.heap());
  }
  over.abort();
  const { made, seconds } = await load;
  console.log(`load: ${(made / seconds).toFixed(0)} events/s for ${seconds.toFixed(0)} s, ${LOCKS} locks`);
  const [ours, others] = [await page.frames(), await idle.frames()];
  tell('frames, dashboard', ours);
  tell('frames, empty page', others);
  const beyond = late(ours.frames) - late(others.frames);
  console.log(`frames over ${LATE_MS} ms beyond those of the empty page: ${Math.max(0, beyond)}`);
  const growth = (heap.at(-1) ?? 0) / (heap[1] ?? 1);
  console.log(`heap in MB: ${heap.map(inMegabytes).join(' ')}; the last is ${growth.toFixed(2)} times the second`);
}

function inMegabytes(bytes) {
  return (bytes / 1e6).toFixed(1);
}

function late(frames) {
  return frames.filter((ms) => ms > LATE_MS).length;
}

/** Runs one command line after the other, and resolves with the time in ms that each row took to the screen. */
async function commandsShown() {
  const { page } = await watched(`${served.link}&view=${encodeURIComponent('/locks?q=by-command-&is=held')}`);
  await page.getByText('live', { exact: true }).waitFor();
  const took = [];
  for (let n = 0; n < COMMANDS; n++) {
    const lock = `by-command-${n}`;
    await page.evaluate((row) => {
      const isShown = () => document.querySelector(`[data-row="${row}"]`) !== null;
      window.painted = new Promise((resolve) => {
        const observer = new MutationObserver(() => {
          if (!isShown()) return;
          observer.disconnect();
          // A timer that is set before a frame is painted ends after it.
          requestAnimationFrame(() => setTimeout(() => resolve(Date.now())));
        });
        observer.observe(document.body, { childList: true, subtree: true });
      });
    }, `lock/${lock}`);
    // Held until it is seen: a list of those that were held before would grow out of the window.
    const command = spawn(process.execPath, [CLI, 'run', '--store', store, '--lock', lock, '--', 'sleep', '60']);
    const ended = once(command, 'exit');
    const painted = await page.evaluate(() => window.painted);
    command.kill('SIGTERM');
    await ended;
    took.push(painted - (await acquiredAt(lock)));
  }
  await page.context().close();
  return took;
}

async function acquiredAt(lock) {
  const token = served.link.slice(served.link.indexOf('=') + 1);
  const path = `/v1/history?resource=lock/${lock}&pattern=lock:acquired`;
  const answer = await fetch(`${served.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
  const { events } = await answer.json();
  return Date.parse(events[0].at) || events[0].at;
}

function tellLive(took) {
  const at = (part) => (quantile(took, part) ?? 0).toFixed(0);
  console.log(
    `live: from the command line to the screen median ${at(0.5)} ms, 95% ${at(0.95)} ms, longest ${at(1)} ms, of ${took.length}`,
  );
}

/** Opens a page that notes its frames. */
async function watched(address) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await page.addInitScript(() => {
    const seen = { frames: [], long: 0, isCollecting: false };
    Object.assign(window, { seen });
    let last = performance.now();
    const frame = (now) => {
      if (!seen.isCollecting) seen.frames.push(now - last);
      last = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    new PerformanceObserver((list) => {
      if (!seen.isCollecting) seen.long += list.getEntries().length;
    }).observe({ type: 'longtask' });
  });
  await page.goto(address);
  const protocol = await context.newCDPSession(page);
  return {
    page,
    frames: () => page.evaluate(() => window.seen),
    beginAgain: () => page.evaluate(() => void Object.assign(window.seen, { frames: [], long: 0 })),
    async heap() {
      await page.evaluate(() => void (window.seen.isCollecting = true));
      await protocol.send('HeapProfiler.collectGarbage');
      const { usedSize } = await protocol.send('Runtime.getHeapUsage');
      await page.evaluate(async () => {
        // The frame that the collection delayed comes first.
        for (let frame = 0; frame < 2; frame++) await new Promise((resolve) => requestAnimationFrame(resolve));
        window.seen.isCollecting = false;
      });
      return usedSize;
    },
  };
}

/** Acquires and releases locks at this rate; each pair is two events. */
async function loaded() {
  let made = 0;
  const begun = performance.now();
  for (let turn = 0; !over.signal.aborted; turn++) {
    const due = ((performance.now() - begun) / 1000) * EVENTS_PER_SECOND;
    if (made >= due) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      continue;
    }
    const n = (turn * 7919) % LOCKS;
    await (await box.lock(`area-${n % 100}/lock-${n}`).acquire({ holder: `agent:${turn % 50}` })).release();
    made += 2;
  }
  return { made, seconds: (performance.now() - begun) / 1000 };
}

function tell(what, { frames, long }) {
  const at = (part) => (quantile(frames, part) ?? 0).toFixed(1);
  console.log(
    `${what}: ${frames.length}, median ${at(0.5)} ms, 99% ${at(0.99)} ms, longest ${at(1)} ms, ${late(frames)} over ${LATE_MS} ms, ${long} long tasks`,
  );
}
