// Looking back: what was held at an earlier time, rebuilt from the record, in every view.

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { timeText } from '../../src/dashboard/model/travel.ts';
import { hasBrowser, launch, Site, visit } from './browser.ts';

let browser: Browser;
let site: Site;
beforeAll(async () => {
  if (!hasBrowser) return;
  browser = await launch();
  site = await Site.on('memory:?witness=on');
});
afterAll(async () => {
  await browser?.close();
  await site?.close();
});

/** The time by which the record knows of everything so far. */
async function recorded(resource: string): Promise<number> {
  const { entries } = (await site.ask('GET', `/v1/witness/entries?resource=${encodeURIComponent(resource)}`)) as {
    entries: { time: number }[];
  };
  return entries.at(-1)?.time ?? 0;
}

describe.skipIf(!hasBrowser)('looking back', () => {
  it('shows who held what at a time, in every view, with actions off, until it is told to come back', async () => {
    const first = await site.hold('main', 'agent:1');
    await site.ask('POST', '/v1/tasks', { id: 'build-7' });
    const then = Math.max(await recorded('lock/main'), await recorded('task/build-7'));
    // Entries have whole milliseconds: what follows is later.
    await expect.poll(() => Date.now()).toBeGreaterThan(then + 1);
    await site.release('main', 'agent:1', first['token']);
    await site.hold('main', 'agent:2');
    await site.hold('later', 'agent:2');

    const path = `/locks?at=${encodeURIComponent(timeText(then))}`;
    const { page, complaints } = await visit(browser, site, { path });
    await page.getByText('You look at').waitFor();
    const row = page.locator('[data-row="lock/main"]');
    await row.getByText('agent:1').first().waitFor();
    expect(await page.locator('[data-row="lock/later"]').count()).toBe(0);

    // From view to view the time stays.
    await row.click();
    await page.locator('.big', { hasText: 'agent:1' }).waitFor();
    expect(page.url()).toContain('at=');
    expect(await page.getByRole('button', { name: /^Break lock…/ }).getAttribute('title')).toBe('You look at the past');
    // One right after the other: the page waits a moment for the second.
    await Promise.all([page.keyboard.press('g'), page.keyboard.press('t')]);
    await page.getByText('build-7').first().waitFor();

    await Promise.all([page.keyboard.press('g'), page.keyboard.press('l')]);
    await row.getByText('agent:1').first().waitFor();
    // One entry on, the lock is free or has its next holder: in any case it is not agent:1's any more.
    await page.keyboard.press('ArrowRight');
    await expect.poll(() => row.getByText('agent:1').count()).toBe(0);
    await page.keyboard.press('l');
    await row.getByText('agent:2').first().waitFor();
    await page.locator('[data-row="lock/later"]').waitFor();
    expect(await page.getByText('You look at').count()).toBe(0);
    expect(page.url()).not.toContain('at=');
    await page.goBack();
    await page.getByText('You look at').waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('is honest where nothing was recorded', async () => {
    const bare = await Site.on();
    try {
      const { page } = await visit(browser, bare, { path: `/locks?at=${timeText(Date.now() - 60_000)}` });
      await page.getByText('The witness of this store is off').waitFor();
      await page.getByRole('button', { name: /Back to now/ }).click();
      await expect.poll(() => page.getByText('You look at').count()).toBe(0);
      await page.context().close();
    } finally {
      await bare.close();
    }
  });
});
