// What an administrator does on the page: resume, skip, run again, resize, break a semaphore. And what the command line does
// meanwhile, which the page shows by itself.

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Scratch } from '../support/cli.ts';
import { hasBrowser, launch, Site, visit } from './browser.ts';

let browser: Browser;
let scratch: Scratch;
let site: Site;
beforeAll(async () => {
  if (!hasBrowser) return;
  browser = await launch();
  scratch = new Scratch();
  // In a file, so that the command line can use the same store.
  site = await Site.on(`${scratch.store}?witness=on`, { allowsCommands: true });
});
afterAll(async () => {
  await browser?.close();
  await site?.close();
  scratch?.remove();
});

/** The body of the request that the page sends when this is clicked. */
async function sentBy(page: Page, path: string, click: () => Promise<void>): Promise<unknown> {
  const sent = page.waitForRequest((request) => request.url().endsWith(path) && request.method() !== 'GET');
  await click();
  return (await sent).postDataJSON();
}

/** The commands that the record has of a resource, with who gave them. */
async function recorded(resource: string): Promise<readonly string[]> {
  const { entries } = (await site.ask('GET', `/v1/witness/entries?resource=${resource}`)) as {
    entries: { commands: { actor: string; command: string }[] }[];
  };
  return entries.flatMap(({ commands }) => commands.map(({ actor, command }) => `${actor} ${command}`));
}

describe.skipIf(!hasBrowser)('a pipeline', () => {
  it('that nobody drives is resumed by the server, as it was seen', async () => {
    await site.box.pipelines.start({ name: 'release', phases: [{ name: 'build', run: 'true' }] }, { id: 'left-alone' });
    const { page, complaints } = await visit(browser, site, { path: '/pipelines/left-alone' });
    await page.getByText('nobody drives it').waitFor();
    await page.getByRole('button', { name: 'Resume…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Resume pipeline/left-alone?' });
    await dialog.getByText('This server drives it from its next phase on.').waitFor();
    const resume = (): Promise<void> => dialog.getByRole('button', { name: 'Resume', exact: true }).click();
    expect(await sentBy(page, '/resume', resume)).toEqual({
      expected: { state: 'pending', phase: null, startedAt: expect.any(String) },
    });
    await page.locator('.under', { hasText: 'Done' }).waitFor();
    await expect.poll(() => page.getByRole('button', { name: 'Resume…' }).count()).toBe(0);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('that asks a person is answered: skip goes on without the phase, run again does it once more', async () => {
    const phases = [
      { name: 'migrate', run: 'exit 3', onFailure: 'block' as const },
      { name: 'announce', run: 'true' },
    ];
    for (const id of ['skipped', 'repeated']) await site.box.pipelines.run({ name: 'release', phases }, { id });
    const questionOf = async (id: string): Promise<number | undefined> => {
      const { blocked } = (await site.box.pipelines.show(id)) ?? {};
      return blocked?.on === 'person' ? blocked.question : undefined;
    };
    const [first, second] = [await questionOf('skipped'), await questionOf('repeated')];
    const { page, complaints } = await visit(browser, site, { path: '/pipelines/skipped' });
    const dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Skip…' }).click();
    await dialog.getByText('The pipeline goes on as if migrate were done').waitFor();
    const skip = (): Promise<void> => dialog.getByRole('button', { name: 'Skip it' }).click();
    expect(await sentBy(page, '/resume', skip)).toMatchObject({ decision: 'skip', question: first });
    await page.locator('.under', { hasText: 'Done' }).waitFor();

    await page.goto(`${site.url}/#/pipelines/repeated`);
    await page.getByRole('button', { name: 'Run again…' }).click();
    await dialog.getByText('This server runs the command of migrate once more').waitFor();
    const again = (): Promise<void> => dialog.getByRole('button', { name: 'Run it again' }).click();
    expect(await sentBy(page, '/resume', again)).toMatchObject({ decision: 'rerun', question: second });
    // It fails once more, and asks anew.
    await expect.poll(async () => (await questionOf('repeated')) ?? 0).toBeGreaterThan(second ?? 0);
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});

describe.skipIf(!hasBrowser)('a semaphore', () => {
  it('is resized from the capacity that was seen, and keeps another one that it got meanwhile', async () => {
    await site.ask('POST', '/v1/semaphores/to-resize/acquire', { holder: 'job:1', capacity: 2, ttlMs: 600_000 });
    const { page } = await visit(browser, site, { path: '/semaphores/to-resize' });
    await page.getByText('1 of 2 slots in use').waitFor();
    const dialog = page.getByRole('dialog', { name: 'Resize semaphore/to-resize?' });
    const askFor = async (slots: string): Promise<void> => {
      await page.getByRole('button', { name: 'Resize…' }).click();
      await dialog.getByText('Nobody loses a slot').waitFor();
      await dialog.getByLabel('Slots from now on').fill(slots);
    };
    const resize = (): Promise<void> => dialog.getByRole('button', { name: 'Resize', exact: true }).click();
    await askFor('5');
    expect(await sentBy(page, '/settings', resize)).toEqual({ capacity: 5, fromCapacity: 2 });
    await page.getByText('1 of 5 slots in use').waitFor();
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
    await askFor('9');
    await site.ask('PUT', '/v1/semaphores/to-resize/settings', { capacity: 3 });
    await page.getByText('1 of 3 slots in use').waitFor();
    await resize();
    await dialog.getByRole('alert').waitFor();
    expect(await site.ask('GET', '/v1/semaphores/to-resize')).toMatchObject({ capacity: 3 });
    expect(await recorded('semaphore/to-resize')).toContain('token:local resize');
    await page.context().close();
  });

  it('that is being drained says so: to leave the question does not stop it, and its answer closes no other', async () => {
    await site.ask('POST', '/v1/semaphores/slow/acquire', { holder: 'job:1', capacity: 2, ttlMs: 600_000 });
    const { page } = await visit(browser, site, { path: '/semaphores/slow' });
    let answer = (): void => undefined;
    const isAnswered = new Promise<void>((resolve) => (answer = resolve));
    await page.route('**/drain', async (route) => {
      await isAnswered;
      await route.continue();
    });
    await page.getByRole('button', { name: 'Drain…' }).click();
    const drain = page.getByRole('dialog', { name: 'Drain semaphore/slow?' });
    await drain.getByText('1 holder keeps what it has.').waitFor();
    await drain.getByLabel('Reason').fill('an upgrade');
    await drain.getByRole('button', { name: 'Drain', exact: true }).click();
    await drain.getByText('Closing this does not stop it').waitFor();
    await drain.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Resize…' }).click();
    const resize = page.getByRole('dialog', { name: 'Resize semaphore/slow?' });
    await resize.waitFor();
    answer();
    await page.locator('.toast', { hasText: 'semaphore/slow is drained' }).waitFor();
    expect(await resize.isVisible()).toBe(true);
    await page.context().close();
  });

  it('is broken with a reason and the newest token: everyone up to it loses its slots, and the queue moves up', async () => {
    for (const [holder, weight] of [
      ['job:1', 1],
      ['job:2', 2],
    ] as const) {
      await site.ask('POST', '/v1/semaphores/to-break/acquire', { holder, weight, capacity: 3, ttlMs: 600_000 });
    }
    const waits = site.box.semaphore('to-break').acquire({ holder: 'job:3', weight: 3 });
    waits.catch(() => undefined);
    const { page, complaints } = await visit(browser, site, { path: '/semaphores/to-break' });
    await page.locator('.row.wants', { hasText: 'job:3' }).waitFor();
    await page.getByRole('button', { name: 'Break…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Break semaphore/to-break?' });
    for (const holder of ['job:1', 'job:2']) await dialog.getByText(`${holder} loses`).waitFor();
    const confirm = dialog.getByRole('button', { name: /^Break token/ });
    const token = /\d+/.exec((await confirm.textContent()) ?? '')?.[0] ?? '';
    await dialog.getByLabel('Reason').fill('both hang');
    expect(await confirm.isDisabled()).toBe(true);
    await dialog.getByLabel(/^Type the token/).fill(token);
    expect(await sentBy(page, '/break', () => confirm.click())).toEqual({ reason: 'both hang', token: Number(token) });
    await (await waits).release();
    await page.getByText('0 of 3 slots in use').waitFor();
    expect(await recorded('semaphore/to-break')).toContain('token:local break');
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});

describe.skipIf(!hasBrowser)('what the command line does', () => {
  it('is on the page by itself: who holds, who waits, and that it is free again', async () => {
    const { page, complaints } = await visit(browser, site, { path: '/locks/by-cli' });
    await page.getByText('Free. The next to ask gets it').waitFor();
    await page.evaluate(() => void (document.body.dataset['page'] = 'the same'));
    const run = (holder: string) =>
      scratch.start('run', '--lock', 'by-cli', '--holder', holder, '--', 'sleep', '100000');
    const first = run('agent:1');
    await page.locator('.big', { hasText: 'agent:1' }).waitFor();
    const second = run('agent:2');
    await page.locator('.queue.row', { hasText: 'agent:2' }).waitFor();
    first.child.kill('SIGINT');
    await first.ended;
    await page.locator('.big', { hasText: 'agent:2' }).waitFor();
    second.child.kill('SIGINT');
    await second.ended;
    await page.getByText('Free. The next to ask gets it').waitFor();
    expect(await page.evaluate(() => document.body.dataset['page'])).toBe('the same');
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});
