// Every view by the rules of axe, in dark and light and at the width of a phone; live after a change by the command line.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { start } from '../support/cli.ts';
import { hasBrowser, launch, PHONE, Site, visit, WIDE } from './browser.ts';
import { violations } from './rules.ts';

let browser: Browser;
let site: Site;
let dir: string;
beforeAll(async () => {
  if (!hasBrowser) return;
  dir = mkdtempSync(join(tmpdir(), 'signalbox-page-'));
  browser = await launch();
  site = await Site.on(`file:${join(dir, 'store')}`);
  await site.hold('main-branch', 'agent:7', { reason: 'rebase', metadata: { branch: 'x' }, maxHoldMs: 1_800_000 });
  for (const holder of ['pipeline:release-7', 'worker:ci-3', 'agent:14']) await site.hold('main-branch', holder);
  await site.ask('PUT', '/v1/locks/lost/settings', { onStale: 'alert' });
  await site.hold('docs', 'agent:2', { mode: 'shared' });
  await site.hold('docs', 'agent:3', { mode: 'shared' });
  for (let place = 0; place < 70; place++) await site.hold(`many/${place}`, 'agent:1');
  for (const [holder, weight] of [
    ['job:1', 4],
    ['job:2', 1],
    ['job:3', 6],
  ] as const) {
    await site.ask('POST', '/v1/semaphores/gpu/acquire', { holder, weight, capacity: 8, waitMs: 0 });
  }
  await site.ask('POST', '/v1/tasks', { id: 'build-7' });
});
afterAll(async () => {
  await browser?.close();
  await site?.close();
  if (dir !== undefined) rmSync(dir, { recursive: true, force: true });
});

const VIEWS = [
  '/overview',
  '/locks',
  '/locks/main-branch',
  '/locks/docs',
  '/locks/nobody',
  '/semaphores',
  '/semaphores/gpu',
];
const LATER = ['/tasks', '/pipelines', '/members', '/timeline', '/charts'];

describe.skipIf(!hasBrowser)('axe finds nothing', () => {
  it.each([
    ['dark', WIDE],
    ['light', WIDE],
    ['dark', PHONE],
    ['light', PHONE],
  ] as const)('in %s at %o', async (theme, viewport) => {
    const { page, complaints } = await visit(browser, site, { theme, viewport });
    await page.locator('main .panel').first().waitFor();
    const found: string[] = [];
    for (const view of [...VIEWS, ...LATER]) {
      await page.goto(`${site.url}/#${view}`);
      await page.locator('main :is(.panel, .column)').first().waitFor();
      found.push(...(await violations(page)).map((one) => `${view} ${one}`));
    }
    await page.keyboard.press('?');
    await page.getByRole('dialog').waitFor();
    found.push(...(await violations(page)).map((one) => `keys ${one}`));
    await page.keyboard.press('Escape');
    await page.keyboard.press('/');
    await page.getByRole('combobox').waitFor();
    found.push(...(await violations(page)).map((one) => `palette ${one}`));
    await page.keyboard.press('Escape');
    await page.goto(`${site.url}/#/locks/main-branch`);
    await page.getByRole('button', { name: 'Break lock…' }).click();
    await page.getByRole('dialog').waitFor();
    found.push(...(await violations(page)).map((one) => `break ${one}`));
    expect(found).toEqual([]);
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});

describe.skipIf(!hasBrowser)('the page', () => {
  it('shows a run of the command line while it runs, and its end', async () => {
    const { page } = await visit(browser, site, { path: '/locks/by-cli' });
    await page.getByText('Free. The next to ask gets it').waitFor();
    const store = `file:${join(dir, 'store')}`;
    const run = start(['run', '--store', store, '--lock', 'by-cli', '--holder', 'a-shell', '--', 'sleep', '600']);
    await page.locator('.big', { hasText: 'a-shell' }).waitFor();
    run.child.kill('SIGTERM');
    await run.ended;
    await page.getByText('Free. The next to ask gets it').waitFor();
    await page.context().close();
  });
});
