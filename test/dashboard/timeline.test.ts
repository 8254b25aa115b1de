// The timeline in a real browser: live, filtered by the address, with the record on and off.

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasBrowser, launch, PHONE, Site, visit, WIDE } from './browser.ts';
import { isTooWide, violations } from './rules.ts';

const HOSTILE = '<img src=x onerror=alert(1)>';

let browser: Browser;
let site: Site;
beforeAll(async () => {
  if (!hasBrowser) return;
  browser = await launch();
  site = await Site.on('memory:?witness=on');
  const { token } = await site.hold('main-branch', 'agent:7', { reason: 'rebase' });
  await site.hold('main-branch', 'worker:3');
  await site.release('main-branch', 'agent:7', token);
  await site.hold(HOSTILE, 'agent:8', { reason: '<script>alert(2)</script>' });
  await site.ask('POST', '/v1/tasks', { id: 'build-7' });
});
afterAll(async () => {
  await browser?.close();
  await site?.close();
});

describe.skipIf(!hasBrowser)('the timeline', () => {
  it('lists what happened before and what happens now, filters by the address, and leads to the resource', async () => {
    const { page, complaints } = await visit(browser, site, { path: '/timeline' });
    const rows = page.locator('.row.events');
    await rows.filter({ hasText: 'agent:7' }).filter({ hasText: 'released' }).waitFor();
    await rows.filter({ hasText: HOSTILE }).waitFor();
    expect(await page.locator('main img, main script').count()).toBe(0);
    await site.hold('later', 'agent:9');
    await rows.filter({ hasText: 'agent:9' }).waitFor();
    await page.keyboard.press('f');
    await page.keyboard.type('main-');
    await page.getByLabel('Filter by holder').fill('worker');
    await page.getByRole('button', { name: 'Locks', exact: true }).click();
    await expect.poll(() => page.url()).toBe(`${site.url}/#/timeline?resource=main-&holder=worker&kind=lock`);
    await expect.poll(() => rows.filter({ hasNotText: 'worker:3' }).count()).toBe(0);
    await page.getByLabel('Filter by holder').fill('nobody');
    await page.getByText('by “nobody”').waitFor();
    await page.getByRole('button', { name: 'Show all' }).click();
    await rows.filter({ hasText: 'main-branch' }).first().click();
    await page.getByRole('heading', { name: 'lock/main-branch' }).waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('keeps its rows while one has the focus, and counts what is newer', async () => {
    const { page } = await visit(browser, site, { path: '/timeline' });
    await page.locator('.row.events', { hasText: 'agent:7' }).first().waitFor();
    await page.keyboard.press('j');
    await site.hold('unseen', 'agent:10');
    await page.getByRole('button', { name: '1 newer' }).click();
    await page.locator('.row.events', { hasText: 'agent:10' }).waitFor();
    await page.context().close();
  });

  it('verifies the record, and says how to switch it on where it is off', async () => {
    await site.hold('recorded-before', 'agent:11');
    const { page } = await visit(browser, site, { path: '/timeline' });
    // The older of its two entries: the newer one may be shown later, after the button was pressed.
    const first = page.locator('.row.recorded', { hasText: 'recorded-before' }).last();
    await first.getByRole('img', { name: 'not verified' }).waitFor();
    await page.getByRole('button', { name: 'Verify' }).click();
    await page.getByText(/entries verify in \d+ chains/).waitFor();
    await first.getByRole('img', { name: 'verified', exact: true }).waitFor();
    await page.context().close();
    const off = await Site.on();
    try {
      const { page: without } = await visit(browser, off, { path: '/timeline' });
      await without.getByText('The witness of this store is off').waitFor();
      await without.getByText("signalbox serve --store 'URL?witness=on'").waitFor();
      await without.getByText('Nothing has happened yet').waitFor();
      await without.context().close();
    } finally {
      await off.close();
    }
  });

  it('shows what is recorded while it is open, and what was verified stays so', async () => {
    await site.hold('recorded-first', 'agent:11');
    const { page, complaints } = await visit(browser, site, { path: '/timeline' });
    const first = page.locator('.row.recorded', { hasText: 'recorded-first' }).last();
    const later = page.locator('.row.recorded', { hasText: 'recorded-later' }).first();
    await first.waitFor();
    await page.getByRole('button', { name: 'Verify' }).click();
    await first.getByRole('img', { name: 'verified', exact: true }).waitFor();
    await site.hold('recorded-later', 'agent:11');
    await later.getByRole('img', { name: 'not verified' }).waitFor();
    await first.getByRole('img', { name: 'verified', exact: true }).waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('shows along the slider where much happened, and where the witness sealed its record', async () => {
    await site.ask('POST', '/v1/witness/checkpoints', {});
    const { page, complaints } = await visit(browser, site, { path: '/timeline' });
    // The server's maintenance may have made more of them by then.
    await page.getByText(/[1-9]\d* checkpoints? of the witness/).waitFor();
    expect(await page.locator('.way > .sealed').count()).toBeGreaterThanOrEqual(1);
    await page.getByText(/^Events, \d+s in a bar; most, \d+, at \d\d:\d\d:\d\d$/).waitFor();
    expect(await page.locator('.histogram path').getAttribute('d')).toMatch(/^M/);
    // In the past, the bars are of the record.
    await page.getByRole('button', { name: '1 min back' }).click();
    await page.getByText('You look at').waitFor();
    await page.getByText(/^Events, .* in a bar/).waitFor();
    await expect.poll(() => page.locator('.histogram path').getAttribute('d')).toMatch(/^M/);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('shows all of an event on a phone, however long its parts are', async () => {
    const name = 'a-long-name-of-a-branch/with-many-parts/and-a-number-at-the-end-4711';
    const holder = 'worker:continuous-integration-on-a-machine-in-europe-17';
    await site.hold(name, holder);
    await site.ask('POST', `/v1/locks/${encodeURIComponent(name)}/break`, { reason: 'the machine was taken down' });
    const { page } = await visit(browser, site, { path: '/timeline', viewport: PHONE });
    const row = page.locator('.row.events', { hasText: 'was made to give up' });
    await row.waitFor();
    const boxes = await row.locator('.said').evaluate((said) => {
      const { bottom } = (said.closest('.row') as Element).getBoundingClientRect();
      return [...said.children].map((line) => bottom - line.getBoundingClientRect().bottom);
    });
    expect(boxes).toHaveLength(2);
    expect(Math.min(...boxes)).toBeGreaterThanOrEqual(0);
    // The words between the two names are never what is cut.
    const words = row.getByText('was made to give up');
    expect(await words.evaluate((one) => one.scrollWidth <= one.clientWidth)).toBe(true);
    await page.context().close();
  });

  it('keeps a damaged chain in sight after it was dismissed from what needs a person', async () => {
    const { page, complaints } = await visit(browser, site);
    const damaged = {
      ...{ kind: 'damaged', key: 'damaged lock/main-branch', subject: 'lock/main-branch' },
      ...{ says: ': what the witness recorded of it does not verify', command: 'signalbox witness verify' },
    };
    await page.route(/\/v1\/board/, async (route) => {
      const answer = await route.fetch();
      // In lines or not, the first line has them.
      const [first = '', ...rest] = (await answer.text()).split('\n');
      const board = JSON.stringify({ ...(JSON.parse(first) as object), troubles: [damaged] });
      await route.fulfill({ response: answer, body: [board, ...rest].join('\n') });
    });
    await page.reload();
    await page.getByText('Damaged record').waitFor();
    await page.getByRole('button', { name: 'Dismiss' }).click();
    await expect.poll(() => page.getByText('Damaged record').count()).toBe(0);
    await page.goto(`${site.url}/#/timeline`);
    await page.getByText('what the witness recorded of it does not verify').waitFor();
    expect(complaints).toEqual([]);
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.context().close();
  });

  it.each([
    ['dark', WIDE],
    ['light', PHONE],
  ] as const)('has nothing that axe finds, in %s at %o', async (theme, viewport) => {
    const { page } = await visit(browser, site, { path: '/timeline', theme, viewport });
    await page.locator('.row.recorded').first().waitFor();
    await page.locator('.row.events').first().waitFor();
    expect(await violations(page)).toEqual([]);
    expect(await isTooWide(page)).toBe(false);
    await page.context().close();
  });
});
