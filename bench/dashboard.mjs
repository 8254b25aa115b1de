/**
 * Does the dashboard stay smooth with 10,000 locks and 1,000 events/s, and does its memory stay flat?
 *
 *     page     first paint, and the time until live data is shown
 *     frames   the time between two frames on the list of locks, beside an empty page in the same browser at the same time: what
 *              that page misses too is the machine's. A long task keeps the page's own thread for over 50 ms
 *     heap     after a collection, every tenth of the time
 *
 * For 2 minutes; SIGNALBOX_LONG=1 for 10, --quick for 20 s. It needs Chromium.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { open } from 'signalbox';
import { startServer } from '../scripts/serving.mjs';
import { machine } from './measure/machine.mjs';
import { quantile } from './measure/rounds.mjs';

const CHROMIUM = '/usr/bin/chromium';
const SECONDS = process.env.SIGNALBOX_LONG === '1' ? 600 : process.argv.includes('--quick') ? 20 : 120;
const LOCKS = 10_000;
const EVENTS_PER_SECOND = 1_000;

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
  const load = loaded();
  const heap = [];
  for (let part = 0; part < 10; part++) {
    await new Promise((resolve) => setTimeout(resolve, (SECONDS * 1000) / 10));
    heap.push(await page.heap());
  }
  over.abort();
  const made = await load;
  console.log(`load: ${(made / SECONDS).toFixed(0)} events/s for ${SECONDS} s, ${LOCKS} locks`);
  tell('frames, dashboard', await page.frames());
  tell('frames, empty page', await idle.frames());
  console.log(`heap in MB: ${heap.map((bytes) => (bytes / 1e6).toFixed(1)).join(' ')}`);
}

/** Opens a page that notes its frames. */
async function watched(address) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await page.addInitScript(() => {
    const seen = { frames: [], long: 0 };
    Object.assign(window, { seen });
    let last = performance.now();
    const frame = (now) => {
      seen.frames.push(now - last);
      last = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    new PerformanceObserver((list) => (seen.long += list.getEntries().length)).observe({ type: 'longtask' });
  });
  await page.goto(address);
  const protocol = await context.newCDPSession(page);
  return {
    page,
    frames: () => page.evaluate(() => window.seen),
    async heap() {
      await protocol.send('HeapProfiler.collectGarbage');
      return (await protocol.send('Runtime.getHeapUsage')).usedSize;
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
  return made;
}

function tell(what, { frames, long }) {
  const late = frames.filter((ms) => ms > 50).length;
  const at = (part) => (quantile(frames, part) ?? 0).toFixed(1);
  console.log(
    `${what}: ${frames.length}, median ${at(0.5)} ms, 99% ${at(0.99)} ms, longest ${at(1)} ms, ${late} over 50 ms, ${long} long tasks`,
  );
}
