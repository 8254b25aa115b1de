// Breaking a lock on the dashboard, with each role; and what the page does while the server is away.

import type { Browser, Page } from 'playwright-core';
import { open, type Role } from 'signalbox';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Scratch, type Started } from '../support/cli.ts';
import { freePort } from '../support/ports.ts';
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

async function visitAs(role: Role, path: string): Promise<{ page: Page; complaints: string[] }> {
  const { secret } = await site.box.tokens.create({ name: `a ${role}`, role });
  return visit(browser, site, { token: secret, path });
}

describe.skipIf(!hasBrowser)('breaking a lock', () => {
  it.each(['viewer', 'worker'] as const)('is not for a %s, who sees why', async (role) => {
    await site.hold(`not-for-${role}`, 'agent:1');
    const { page } = await visitAs(role, `/locks/not-for-${role}`);
    const button = page.getByRole('button', { name: /^Break lock…/ });
    await button.waitFor();
    await expect
      .poll(() => button.getAttribute('title'))
      .toBe(`Needs the role administrator; your token is of a ${role}`);
    await button.click({ force: true });
    await page.keyboard.press('b');
    expect(await page.getByRole('dialog').count()).toBe(0);
    await page.context().close();
  });

  it('needs a reason and the token, says who loses it and who gets it, and is in the history and the witness', async () => {
    await site.hold('to-break', 'agent:1');
    await site.hold('to-break', 'agent:2');
    const { page, complaints } = await visitAs('administrator', '/locks/to-break');
    await page.locator('.big', { hasText: 'agent:1' }).waitFor();
    await page.keyboard.press('b');
    const dialog = page.getByRole('dialog', { name: 'Break lock/to-break?' });
    await dialog.getByText('loses the hold').waitFor();
    await dialog.getByText('gets it at once').waitFor();
    const confirm = dialog.getByRole('button', { name: /^Break token/ });
    expect(await confirm.isDisabled()).toBe(true);
    // The reason has the focus.
    await page.keyboard.type('agent:1 was switched off');
    const token = /\d+/.exec((await confirm.textContent()) ?? '')?.[0] ?? '';
    await dialog.getByLabel(/^Type the token/).fill('0');
    expect(await confirm.isDisabled()).toBe(true);
    await dialog.getByLabel(/^Type the token/).fill(token);
    await confirm.click();
    await page.locator('.big', { hasText: 'agent:2' }).waitFor();
    // The news of it may come before the answer.
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
    const { events } = (await site.ask('GET', '/v1/history?resource=lock/to-break&pattern=lock:forced')) as {
      events: object[];
    };
    expect(events).toMatchObject([
      { holder: 'agent:1', by: 'token:a administrator', reason: 'agent:1 was switched off' },
    ]);
    const { entries } = (await site.ask('GET', '/v1/witness/entries?resource=lock/to-break&event=lock:forced')) as {
      entries: { commands: object[] }[];
    };
    expect(entries).toHaveLength(1);
    expect(entries[0]?.commands[0]).toMatchObject({
      ...{ actor: 'token:a administrator', command: 'break', outcome: 'broken' },
      detail: {
        reason: 'agent:1 was switched off',
        lost: [{ holder: 'agent:1', token: Number(token), why: 'forced' }],
      },
    });
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('breaks nothing that has changed hands meanwhile, and says so', async () => {
    const held = await site.hold('changes-hands', 'agent:1');
    const { page } = await visitAs('administrator', '/locks/changes-hands');
    await page.locator('.big', { hasText: 'agent:1' }).waitFor();
    await page.getByRole('button', { name: 'Break lock…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Reason').fill('too slow');
    await dialog.getByLabel(/^Type the token/).fill(String(held['token']));
    await site.release('changes-hands', 'agent:1', held['token']);
    const next = await site.hold('changes-hands', 'agent:2');
    await dialog.getByText('It has changed hands since you opened this').waitFor();
    expect(await dialog.getByRole('button', { name: /^Break token/ }).isDisabled()).toBe(true);
    await page.keyboard.press('Escape');
    // A request that was under way is refused by the server in the same way.
    await expect(
      site.ask('POST', '/v1/locks/changes-hands/break', { reason: 'late', token: held['token'] }),
    ).rejects.toThrow('nothing was broken');
    expect(await site.ask('GET', '/v1/locks/changes-hands')).toMatchObject({ holds: [{ token: next['token'] }] });
    await page.context().close();
  });
});

describe.skipIf(!hasBrowser)('draining a semaphore', () => {
  it('asks for a reason, says what happens to whom, shows it to all, and is undone again', async () => {
    await site.ask('POST', '/v1/semaphores/to-drain/acquire', { holder: 'job:1', capacity: 2, ttlMs: 600_000 });
    const { page, complaints } = await visitAs('administrator', '/semaphores/to-drain');
    await page.getByText('1 of 2 slots in use').waitFor();
    await page.getByRole('button', { name: 'Drain…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Drain semaphore/to-drain?' });
    await dialog.getByText('Nothing new is granted until you undo it').waitFor();
    await page.keyboard.type('the database moves');
    await dialog.getByRole('button', { name: 'Drain', exact: true }).click();
    await page.getByText('the database moves').waitFor();
    // This process waits for it, so it stays in the queue however long the second browser takes.
    const second = site.box.semaphore('to-drain').acquire({ holder: 'job:2' });
    second.catch(() => undefined);
    await page.locator('.row.wants', { hasText: 'job:2' }).getByText('drained: nothing new is granted').waitFor();
    const viewer = await visitAs('viewer', '/semaphores/to-drain');
    const button = viewer.page.getByRole('button', { name: /^Undo drain…/ });
    await button.waitFor();
    expect(await button.getAttribute('aria-disabled')).toBe('true');
    await page.getByRole('button', { name: 'Undo drain…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Undo', exact: true }).click();
    await second;
    await page.locator('.row.holders', { hasText: 'job:2' }).waitFor();
    await page.getByRole('button', { name: 'Drain…', exact: true }).waitFor();
    expect([...complaints, ...viewer.complaints]).toEqual([]);
    await page.context().close();
    await viewer.page.context().close();
  });
});

describe.skipIf(!hasBrowser)('while the server is away', () => {
  it('because it was killed, the page stands still, offers no actions, and goes on without a gap, a repeat or a reload', async () => {
    const scratch = new Scratch();
    const port = String(await freePort());
    const running: Started[] = [];
    const serve = async (): Promise<Started> => {
      const server = scratch.start('serve', '--port', port, '--json');
      running.push(server);
      await server.printed('"url"');
      return server;
    };
    const box = await open(scratch.store);
    try {
      const server = await serve();
      const token = (await scratch.run('token', 'local')).stdout.trim();
      const lock = box.lock('away');
      const first = await lock.acquire({ holder: 'agent:1' });
      const { page } = await visit(browser, { url: `http://127.0.0.1:${port}` }, { token, path: '/locks/away' });
      await page.locator('.big', { hasText: 'agent:1' }).waitFor();
      await page.getByText('live', { exact: true }).waitFor();
      await page.evaluate(() => void (document.body.dataset['page'] = 'the same'));
      server.child.kill('SIGKILL');
      await server.ended;
      await page.getByText('Reconnecting.').waitFor();
      const button = page.getByRole('button', { name: /^Break lock…/ });
      expect(await button.getAttribute('aria-disabled')).toBe('true');
      // What happens meanwhile, each of which leaves an event.
      await first.release();
      for (const holder of ['agent:2', 'agent:3', 'agent:4']) await (await lock.acquire({ holder })).release();
      await using _last = await lock.acquire({ holder: 'agent:5' });
      await serve();
      await page.locator('.big', { hasText: 'agent:5' }).waitFor();
      await expect.poll(() => page.getByText('Reconnecting.').count()).toBe(0);
      // The history is drawn from the events: each hold is in it once.
      await expect.poll(() => page.locator('.drawing rect title').allTextContents()).toHaveLength(5);
      const told = (await page.locator('.drawing rect title').allTextContents()).map((text) => text.split(',')[0]);
      expect(told).toEqual(['agent:1', 'agent:2', 'agent:3', 'agent:4', 'agent:5']);
      expect(await page.evaluate(() => document.body.dataset['page'])).toBe('the same');
      await page.context().close();
    } finally {
      await box.close();
      for (const { child } of running) child.kill('SIGKILL');
      await Promise.all(running.map(({ ended }) => ended));
      scratch.remove();
    }
  });
});
