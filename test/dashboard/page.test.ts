// The dashboard in a real browser: live, by keyboard, back and forward, with hostile names.

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KEY_MAP } from '../../src/dashboard/model/keys.ts';
import { hasBrowser, launch, LOCAL, Site, visit } from './browser.ts';
import { violations } from './rules.ts';

/** By the letter after `G`. */
const HEADINGS: Readonly<Record<string, string>> = {
  ...{
    L: 'Locks',
    S: 'Semaphores',
    T: 'Tasks',
    P: 'Pipelines',
    M: 'Members',
    W: 'Timeline',
    C: 'Charts',
    O: 'Overview',
  },
};

let browser: Browser;
let site: Site;
beforeAll(async () => {
  if (!hasBrowser) return;
  browser = await launch();
  site = await Site.on();
});
afterAll(async () => {
  await browser?.close();
  await site?.close();
});

describe.skipIf(!hasBrowser)('the dashboard', () => {
  it('teaches the first command where nothing was ever held, and fills by itself', async () => {
    const empty = await Site.on();
    try {
      const { page, complaints } = await visit(browser, empty);
      await page.getByRole('heading', { name: 'The line is clear' }).waitFor();
      await page.getByText('signalbox run --lock main-branch -- sleep 60', { exact: true }).waitFor();
      await empty.hold('main-branch', 'first-shell');
      await page.getByText('first-shell').waitFor();
      expect(complaints).toEqual([]);
      await page.context().close();
    } finally {
      await empty.close();
    }
  });

  it('takes the token out of the address at once, keeps it for the tab alone, and shows nothing without one', async () => {
    const { page } = await visit(browser, site, { path: '/locks' });
    await page.getByRole('heading', { name: 'Locks', level: 1 }).waitFor();
    await expect.poll(() => page.url()).toBe(`${site.url}/#/locks`);
    expect(await page.evaluate(() => [sessionStorage.length, localStorage.getItem('signalbox.token')])).toEqual([
      1,
      null,
    ]);
    await page.reload();
    await page.getByRole('heading', { name: 'Locks', level: 1 }).waitFor();
    const other = await page.context().newPage();
    await other.goto(`${site.url}/#/locks`);
    await other.getByRole('heading', { name: 'Your token, please' }).waitFor();
    await other.getByLabel('Token', { exact: true }).fill(LOCAL);
    await other.getByRole('button', { name: 'Show the board' }).click();
    await other.getByRole('heading', { name: 'Locks', level: 1 }).waitFor();
    await page.context().close();
  });

  it('shows within a moment what others do: who holds, who waits, who has it then', async () => {
    const { page, complaints } = await visit(browser, site, { path: '/locks/live' });
    await page.getByText('Free. The next to ask gets it').waitFor();
    const { token } = await site.hold('live', 'agent:1', { reason: 'to be seen' });
    await page.locator('.big', { hasText: 'agent:1' }).waitFor();
    await page.getByText('to be seen').waitFor();
    await site.hold('live', 'agent:2');
    await page.locator('.queue.row', { hasText: 'agent:2' }).waitFor();
    await page.getByText('Everyone here waits, in the end, for agent:1').waitFor();
    await site.release('live', 'agent:1', token);
    await page.locator('.big', { hasText: 'agent:2' }).waitFor();
    await page.getByText('Nobody stands at the signal.').waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('stands still after Space, and goes on where everything is by then', async () => {
    const { page, complaints } = await visit(browser, site, { path: '/locks' });
    await page.getByRole('heading', { name: 'Locks', level: 1 }).waitFor();
    await page.keyboard.press('Space');
    await page.getByText('The page is frozen').waitFor();
    await site.hold('while-frozen', 'agent:2');
    const { page: other } = await visit(browser, site, { path: '/locks' });
    await other.locator('[data-row="lock/while-frozen"]').waitFor();
    expect(await page.locator('[data-row="lock/while-frozen"]').count()).toBe(0);
    // Views change, the moment stays.
    await Promise.all([page.keyboard.press('g'), page.keyboard.press('o')]);
    await page.getByText('The page is frozen').waitFor();
    await page.goBack();
    await page.keyboard.press('l');
    await page.locator('[data-row="lock/while-frozen"]').waitFor();
    expect(await page.getByText('The page is frozen').count()).toBe(0);
    expect(complaints).toEqual([]);
    await page.context().close();
    await other.context().close();
  });

  it('is used by keyboard: views, rows, palette, map of the keys, back and forward', async () => {
    await site.hold('keys-a', 'agent:1');
    const { page, complaints } = await visit(browser, site);
    await page.getByText('All clear').waitFor();
    // One right after the other: the page waits a moment for the second.
    await Promise.all([page.keyboard.press('g'), page.keyboard.press('l')]);
    await page.getByRole('heading', { name: 'Locks', level: 1 }).waitFor();
    await page.keyboard.press('f');
    await page.keyboard.type('keys-');
    await page.getByText('1 of').waitFor();
    await expect.poll(() => page.url()).toBe(`${site.url}/#/locks?q=keys-`);
    await page.keyboard.press('Escape');
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'lock/keys-a' }).waitFor();
    await page.keyboard.press('/');
    await page.getByRole('combobox').waitFor();
    await page.keyboard.type('semaph');
    await page.keyboard.press('Enter');
    await page.getByText('No semaphore yet').waitFor();
    await page.goBack();
    await page.getByRole('heading', { name: 'lock/keys-a' }).waitFor();
    await page.goBack();
    await page.getByText('1 of').waitFor();
    await page.goForward();
    await page.getByRole('heading', { name: 'lock/keys-a' }).waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
    const theme = (): Promise<string | undefined> => page.evaluate(() => document.documentElement.dataset['theme']);
    expect(await theme()).toBe('dark');
    await page.keyboard.press('d');
    await expect.poll(theme).toBe('light');
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('opens every view that the map of the keys names by G and its letter', async () => {
    const letters = KEY_MAP.flatMap(([keys]) => (keys.startsWith('G ') ? [keys.slice(2)] : []));
    expect(letters.toSorted()).toEqual(Object.keys(HEADINGS).toSorted());
    const { page, complaints } = await visit(browser, site);
    await page.getByRole('banner').getByText('live', { exact: true }).waitFor();
    for (const [letter, heading] of Object.entries(HEADINGS)) {
      const opened = async (): Promise<string | null> => {
        // Pressed again where a busy machine let more time pass between the two than the page waits for the second.
        await Promise.all([page.keyboard.press('g'), page.keyboard.press(letter.toLowerCase())]);
        return page.getByRole('heading', { level: 1 }).textContent();
      };
      await expect.poll(opened).toBe(heading);
      expect(page.url()).toBe(`${site.url}/#/${heading.toLowerCase()}`);
    }
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('shows hostile names and metadata as text', async () => {
    const names = [
      '<script>alert(1)</script>',
      '<img src=x onerror=alert(1)>',
      'مرحبا-world',
      'a/b?c#d',
      'x'.repeat(200),
    ];
    const metadata = {
      html: '<b onmouseover=alert(1)>x</b>',
      turned: '\u202edrow',
      nul: '\u0000',
      long: '',
    };
    metadata.long = 'y'.repeat(64 * 1024 - Buffer.byteLength(JSON.stringify(metadata)));
    for (const name of names)
      await site.hold(name, '"><script>alert(2)</script>', { reason: `<i>${name}</i>\u0000\u202e`, metadata });
    const { page, complaints } = await visit(browser, site, { path: '/locks' });
    await page.getByRole('heading', { name: 'Locks', level: 1 }).waitFor();
    let alerts = 0;
    page.on('dialog', (dialog) => (alerts++, void dialog.dismiss()));
    for (const name of names) {
      await page.goto(`${site.url}/#/locks/${encodeURIComponent(name)}`);
      await page.getByRole('heading', { level: 1, name: `lock/${name}`, exact: true }).waitFor();
      await page.locator('.facts', { hasText: '<b onmouseover=alert(1)>x</b>' }).waitFor();
      // What cannot be seen is shown by its number, and turns nothing around it; JSON has its own way to write NUL.
      const facts = (await page.locator('.facts').textContent()) ?? '';
      expect(facts).toContain(`<i>${name}</i>⟨0000⟩⟨202e⟩`);
      expect(facts).toContain('"turned":"⟨202e⟩drow","nul":"\\u0000"');
      expect(facts).toContain(`y… (${64 * 1024 - 2 - 2000} more)`);
      expect(await page.locator('body').textContent()).not.toMatch(/[\u0000\u202e]/);
    }
    expect(await page.locator('main script, main img, main i:not(:empty):not(.name > i)').count()).toBe(0);
    // Nothing makes the page wider than its window.
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    expect([alerts, complaints]).toEqual([0, []]);
    await page.context().close();
  });

  it('shows a deadlock that was broken: what needs you, its own page in words, until it is settled', async () => {
    const own = await Site.on();
    try {
      const [a, b] = [own.box.lock('a'), own.box.lock('b')];
      await using _first = await a.acquire({ holder: 'anna' });
      const second = await b.acquire({ holder: 'bert' });
      const { page, complaints } = await visit(browser, own, { path: '/locks/b' });
      const waits = b.acquire({ holder: 'anna' });
      waits.catch(() => undefined);
      await page.locator('.queue.row', { hasText: 'anna' }).waitFor();
      await expect(a.acquire({ holder: 'bert' })).rejects.toMatchObject({ refusal: { kind: 'deadlock' } });
      await page.goto(`${own.url}/#/overview`);
      await page.getByText('Broken by refusing bert: bert → lock/a → anna → lock/b').waitFor();
      expect(await violations(page)).toEqual([]);
      await page.getByRole('button', { name: 'See cycle' }).press('Enter');
      await page.getByRole('heading', { name: 'Deadlock, broken' }).waitFor();
      const told = 'bert waits for lock/a, held by anna; anna waits for lock/b, held by bert. bert was refused.';
      await page.getByRole('img', { name: told }).waitFor();
      await page.getByText('signalbox run --lock a --lock b -- …', { exact: true }).waitFor();
      expect(await violations(page)).toEqual([]);
      // Its address can be shared: somebody who opens it later sees the same.
      await page.reload();
      await page.getByRole('img', { name: told }).waitFor();
      await second.release();
      await (await waits).release();
      await page.getByRole('button', { name: 'Settled' }).click();
      await page.getByText('All clear').waitFor();
      expect(complaints).toEqual([]);
      await page.context().close();
    } finally {
      await own.close();
    }
  });

  it('shows six matters, and all of them on demand, so that the locks stay in sight', async () => {
    const own = await Site.on();
    try {
      const [a, b] = [own.box.lock('a'), own.box.lock('b')];
      await a.acquire({ holder: 'anna' });
      await b.acquire({ holder: 'bert' });
      b.acquire({ holder: 'anna' }).catch(() => undefined);
      await expect.poll(() => own.ask('GET', '/v1/locks/b')).toMatchObject({ waiting: [{ holder: 'anna' }] });
      for (let refusals = 0; refusals < 8; refusals++) {
        await expect(a.acquire({ holder: 'bert' })).rejects.toMatchObject({ refusal: { kind: 'deadlock' } });
      }
      const { page, complaints } = await visit(browser, own);
      const matters = page.getByRole('button', { name: 'See cycle' });
      await page.getByText('2 more: Deadlock 2').waitFor();
      expect(await matters.count()).toBe(6);
      await page.getByRole('button', { name: 'Show all 8' }).click();
      await expect.poll(() => matters.count()).toBe(8);
      expect(page.url()).toBe(`${own.url}/#/overview?needs=all`);
      expect(await violations(page)).toEqual([]);
      await page.getByRole('button', { name: 'Show fewer' }).click();
      await expect.poll(() => matters.count()).toBe(6);
      expect(complaints).toEqual([]);
      await page.context().close();
    } finally {
      await own.close();
    }
  });
});
