// @ts-check
// npm run pictures: every view of the dashboard in a real browser, in both themes and at both widths, with nothing, a little and
// much in it, as files to be looked at; and the few of them that the documentation shows.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ensure, root } from './ensure.mjs';
import { fillWithLittle, fillWithMuch, keepBusy } from './pictures/fill.mjs';
import { smaller } from './pictures/palette.mjs';
import { startServer } from './serving.mjs';
import { argumentsFor } from './usage.mjs';

const AMOUNTS = /** @type {const} */ (['nothing', 'little', 'much']);
const args = argumentsFor(
  `Usage: npm run pictures -- [nothing|little|much …] [--all DIRECTORY]

Writes the pictures of docs/pictures anew. With --all, every view, in both themes and at both widths, to a directory.

Example: npm run pictures -- --all /tmp/pictures little`,
  (argument) => argument === '--all' || !argument.startsWith('--'),
);
const place = args.indexOf('--all');
const everything = place < 0 ? undefined : args[place + 1];
const wanted = AMOUNTS.filter((amount) => args.includes(amount));

const FILLED = AMOUNTS.slice(1);
/** View, path, and which amounts it is worth looking at with. */
const VIEWS = /** @type {readonly (readonly [string, string, readonly string[]])[]} */ ([
  ['locks', '/locks', AMOUNTS],
  ['lock', '/locks/main-branch', FILLED],
  ['github', '/github/42', ['nothing']],
  ['semaphores', '/semaphores', AMOUNTS],
  ['semaphore', '/semaphores/gpu', FILLED],
  ['drained', '/semaphores/staging', ['little']],
  ['tasks', '/tasks', AMOUNTS],
  ['task', '/tasks/lint-web', FILLED],
  ['pipelines', '/pipelines', AMOUNTS],
  ['pipeline', '/pipelines/release-41', FILLED],
  ['members', '/members', AMOUNTS],
  ['member', '/members/builder-1', FILLED],
  ['timeline', '/timeline', AMOUNTS],
  ['past', '/timeline?at=THEN', ['little']],
  ['break', '/locks/main-branch', ['little']],
  ['deadlock', '/deadlocks/DEADLOCK', FILLED],
  // Last: what is stuck for half a minute needs somebody, and a chart needs some minutes.
  ['overview', '/overview', AMOUNTS],
  ['charts', '/charts', AMOUNTS],
]);
/** A chart of a store that has just begun is empty on its left. */
const CHARTED_MS = 200_000;
const WIDE = { width: 1280, height: 800 };
const TALL = { width: 1280, height: 1110 };
const PHONE = { width: 390, height: 844 };

/** The pictures of the documentation: file, view, theme, width. */
const KEPT = /** @type {const} */ ([
  ['overview-dark', 'overview', 'dark', 'wide'],
  ['overview-light', 'overview', 'light', 'wide'],
  ['lock-light', 'lock', 'light', 'wide'],
  ['semaphore-light', 'semaphore', 'light', 'wide'],
  ['tasks-dark', 'tasks', 'dark', 'wide'],
  ['pipeline-dark', 'pipeline', 'dark', 'wide'],
  ['members-light', 'members', 'light', 'wide'],
  ['past-dark', 'past', 'dark', 'wide'],
  ['charts-light', 'charts', 'light', 'wide'],
  ['break', 'break', 'dark', 'wide'],
  ['phone', 'overview', 'dark', 'phone'],
]);

ensure();
const { chromium } = await import('playwright-core');
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  for (const amount of everything === undefined
    ? /** @type {const} */ (['little'])
    : wanted.length > 0
      ? wanted
      : AMOUNTS) {
    await pictureAll(amount);
  }
} finally {
  await browser.close();
}

/** @param {'nothing' | 'little' | 'much'} amount */
async function pictureAll(amount) {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-pictures-'));
  const store = `file:${join(directory, 'store')}`;
  /** @type {(() => Promise<void>)[]} */
  const closing = [];
  const served = await startServer({ store: `${store}?witness=on`, port: 0 });
  try {
    const { open } = await import(join(root, 'dist', 'index.js'));
    const box = await open(store);
    closing.push(() => box.close());
    const then = amount === 'little' ? await fillWithLittle(box) : undefined;
    if (amount === 'much') await fillWithMuch(box);
    if (amount !== 'nothing') closing.unshift(keepBusy(box));
    const begun = Date.now();
    for (const [view, path, amounts] of VIEWS.filter(([, , worth]) => worth.includes(amount))) {
      for (const theme of /** @type {const} */ (['dark', 'light'])) {
        for (const [width, viewport] of /** @type {const} */ ([
          ['wide', WIDE],
          ['phone', PHONE],
        ])) {
          const kept = KEPT.find(
            ([, of, is, at]) => of === view && is === theme && at === width && amounts.includes('little'),
          );
          if (everything === undefined && kept === undefined) continue;
          if (view === 'charts' && amount !== 'nothing') await sleep(Math.max(0, begun + CHARTED_MS - Date.now()));
          const at = path
            .replace('THEN', new Date(then ?? 0).toISOString())
            .replace('DEADLOCK', path.includes('DEADLOCK') ? await lastDeadlock(served) : '');
          const page = await shown(served, at, theme, view === 'charts' && width === 'wide' ? TALL : viewport);
          if (view === 'break') await askToBreak(page);
          const file =
            everything === undefined
              ? join(root, 'docs', 'pictures', `${kept?.[0]}.png`)
              : join(everything, `${view}-${amount}-${theme}-${width}.png`);
          if (everything !== undefined) mkdirSync(everything, { recursive: true });
          writeFileSync(
            file,
            await smaller(page, await (kept?.[0] === 'break' ? page.getByRole('dialog') : page).screenshot()),
          );
          await page.context().close();
        }
      }
    }
  } finally {
    for (const close of closing) await close();
    served.child.kill();
    await served.ended;
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** @param {import('./serving.mjs').Served} served */
async function lastDeadlock({ url, link }) {
  const token = link.slice(link.indexOf('=') + 1);
  const answer = await fetch(`${url}/v1/history?pattern=lock:deadlock`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const { events } = /** @type {{ events: { id: string }[] }} */ (await answer.json());
  return events.at(-1)?.id ?? '';
}

/** @param {import('playwright-core').Page} page */
async function askToBreak(page) {
  await page.getByRole('button', { name: 'Break lock…' }).click();
  await page.getByLabel('Reason').fill('agent:7 was switched off');
  const token = page.getByLabel('Type the token you expect to break');
  const [, now = ''] = /now (\d+)/.exec((await token.locator('..').textContent()) ?? '') ?? [];
  await token.fill(now);
}

/**
 * @param {import('./serving.mjs').Served} served
 * @param {string} path
 * @param {'dark' | 'light'} theme
 * @param {{ width: number, height: number }} viewport
 */
async function shown(served, path, theme, viewport) {
  const context = await browser.newContext({ viewport, colorScheme: theme, reducedMotion: 'reduce' });
  const page = await context.newPage();
  // The machine on which the pictures are taken is nobody's business.
  await page.route(/\/v1\/(board|resources|history|locks|semaphores|tasks|pipelines|witness)/, async (route) => {
    const answer = await route.fetch().catch(() => undefined);
    // The page was closed meanwhile.
    if (answer === undefined || page.isClosed()) return;
    const text = (await answer.text().catch(() => ''))
      .replaceAll(JSON.stringify(process.cwd()).slice(1, -1), '/srv/shop')
      .replaceAll(`"${hostname()}"`, '"build-3"')
      .replaceAll(`:${hostname()}:`, ':build-3:')
      .replaceAll('"user":"root"', '"user":"ada"');
    await route.fulfill({ response: answer, body: text }).catch(() => undefined);
  });
  await page.goto(`${served.link}&view=${encodeURIComponent(path)}`);
  await page
    .locator(path.includes('at=') ? '.strip.past:has-text("Rebuilt from")' : '.chip b:text-is("live")')
    .first()
    .waitFor();
  // Charts and figures begin with what the store remembers, which comes after the board.
  if (path === '/charts' || path === '/overview') await page.waitForTimeout(3000);
  // What a view reads for itself comes after the board.
  await page.waitForLoadState('networkidle', { timeout: 1500 }).catch(() => undefined);
  return page;
}
