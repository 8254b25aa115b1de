// The charts in a real browser: what happened before and since, read by pointer and keyboard, as a table, and with nothing in them.

import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasBrowser, launch, PHONE, Site, visit, WIDE } from './browser.ts';
import { isTooWide, violations } from './rules.ts';

/** A test that takes longer than an hour has other troubles. */
const PATH = '/charts?span=hour';

let browser: Browser;
let site: Site;
beforeAll(async () => {
  if (!hasBrowser) return;
  browser = await launch();
  site = await Site.on();
  const { token } = await site.hold('main', 'agent:1');
  await site.hold('main', 'agent:2');
  await site.release('main', 'agent:1', token);
});
afterAll(async () => {
  await browser?.close();
  await site?.close();
});

function chart(page: Page, title: string): Locator {
  return page.getByRole('figure', { name: title, exact: true });
}

async function figureOf(page: Page, title: string): Promise<string> {
  return (await chart(page, title).locator('.figure').textContent()) ?? '';
}

describe.skipIf(!hasBrowser)('the charts', () => {
  it('count what happened before the page was opened, and go on with what happens now', async () => {
    const { page, complaints } = await visit(browser, site, { path: PATH });
    await expect.poll(() => figureOf(page, 'Acquired')).toBe('2');
    expect(await figureOf(page, 'Conflicts')).toBe('1');
    await site.hold('other', 'agent:3');
    await expect.poll(() => figureOf(page, 'Acquired')).toBe('3');
    // The wait of agent:2 and the hold of agent:1 are over.
    for (const title of ['How often', 'How long requests wait', 'How long things are held']) {
      expect(await chart(page, title).locator('path.look').count()).toBeGreaterThan(0);
      await chart(page, title).getByRole('slider').waitFor();
    }
    await page.getByText(/^The same values as a table/).click();
    const grants = page.locator('.values tbody tr td:nth-of-type(1)');
    await expect
      .poll(async () => (await grants.allTextContents()).reduce((sum, text) => sum + Number(text), 0))
      .toBe(3);
    expect(await violations(page)).toEqual([]);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('read a value out where the pointer is, and where the keys lead', async () => {
    const { page } = await visit(browser, site, { path: PATH });
    const slider = page.getByRole('slider', { name: 'How often, read a value' });
    await slider.waitFor();
    expect(await page.locator('.cursor').count()).toBe(0);
    await slider.hover();
    // One time for all charts, so that they can be compared.
    await expect.poll(() => page.locator('.cursor').count()).toBeGreaterThan(1);
    await page.mouse.move(0, 0);
    await expect.poll(() => page.locator('.cursor').count()).toBe(0);
    await slider.focus();
    await page.keyboard.press('Home');
    await expect.poll(() => slider.inputValue()).toBe('0');
    await page.keyboard.press('ArrowRight');
    await expect.poll(() => page.locator('.cursor').count()).toBeGreaterThan(1);
    expect(await slider.getAttribute('aria-valuetext')).toMatch(
      /^\d\d:\d\d:\d\d: Grants \S+, Conflicts \S+, Releases \S+$/,
    );
    // The arrows belong to the chart, and move nobody into the past.
    expect(page.url()).not.toContain('at=');
    await page.context().close();
  });

  it('are reached by keys, keep their span in the address, and teach a command where there is nothing', async () => {
    const bare = await Site.on();
    try {
      const { page, complaints } = await visit(browser, bare, { theme: 'light', viewport: PHONE });
      await page.locator('main h1').first().waitFor();
      await Promise.all([page.keyboard.press('g'), page.keyboard.press('c')]);
      await page.getByText('Nothing was granted').waitFor();
      await page.getByText('signalbox run --lock main-branch').waitFor();
      await page.getByText('Nobody had to wait').waitFor();
      const [frame, command] = [chart(page, 'How often'), page.locator('.nothing-yet .command')];
      const right = async (of: Locator): Promise<number> => {
        const { x = 0, width = 0 } = (await of.boundingBox()) ?? {};
        return x + width;
      };
      expect(await right(command)).toBeLessThanOrEqual(await right(frame));
      await page.getByRole('button', { name: '60 minutes' }).click();
      await expect.poll(() => page.url()).toBe(`${bare.url}/#/charts?span=hour`);
      expect(await violations(page)).toEqual([]);
      expect(await isTooWide(page)).toBe(false);
      expect(complaints).toEqual([]);
      await page.context().close();
    } finally {
      await bare.close();
    }
  });

  it.each([
    ['light', WIDE],
    ['dark', PHONE],
  ] as const)('have nothing that axe finds, in %s at %o', async (theme, viewport) => {
    const { page } = await visit(browser, site, { path: PATH, theme, viewport });
    await page.getByRole('slider', { name: 'How often, read a value' }).waitFor();
    expect(await violations(page)).toEqual([]);
    expect(await isTooWide(page)).toBe(false);
    await page.context().close();
  });
});
