// Tasks, pipelines and members in a real browser: live, by role, with hostile names, and by the rules of axe.

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { hasBrowser, launch, PHONE, Site, visit, WIDE } from './browser.ts';
import { isTooWide, violations } from './rules.ts';

const HOSTILE = '<img src=x onerror=alert(1)>';

let browser: Browser;
let site: Site;
let driving: Promise<unknown> | undefined;
beforeAll(async () => {
  if (!hasBrowser) return;
  browser = await launch();
  site = await Site.on();
  await publishTasks();
  ({ running: driving } = await runPipeline());
  await site.box.members.join('agent:12', { html: HOSTILE });
  await site.box.members.join(HOSTILE);
  await site.hold('lead:release', 'agent:12:1');
});
afterAll(async () => {
  await browser?.close();
  await site?.ask('POST', '/v1/pipelines/release-7/cancel', { reason: 'the tests are over' }).catch(() => undefined);
  await driving?.catch(() => undefined);
  await site?.close();
});

async function claim(task: string, holder: string): Promise<unknown> {
  const { token } = await site.ask('POST', `/v1/tasks/${encodeURIComponent(task)}/claim`, { holder, ttlMs: 600_000 });
  return token;
}

async function publishTasks(): Promise<void> {
  await site.ask('POST', '/v1/tasks', { id: 'build', data: { html: HOSTILE }, by: 'ann', capabilities: [] });
  await site.ask('POST', '/v1/tasks', { id: 'deploy', dependsOn: ['build'] });
  await site.ask('POST', '/v1/tasks', { id: 'lint', priority: 5, capabilities: ['code:ts'] });
  await site.ask('POST', '/v1/tasks', { id: HOSTILE });
  await site.ask('POST', `/v1/tasks/${encodeURIComponent(HOSTILE)}/fail`, {
    ...{ token: await claim(HOSTILE, '"><b>x</b>'), reason: '<i>no disk</i>', retry: false },
  });
}

/** Its first phase prints something; its second waits for two locks. */
async function runPipeline(): Promise<{ readonly running: Promise<unknown> }> {
  await site.hold('main', 'agent:7', { reason: HOSTILE });
  await site.hold('freeze', 'ann');
  const condition = { all: [{ lockFree: 'main' }, { lockFree: 'freeze' }] };
  const running = site.box.pipelines.run(
    {
      name: 'release',
      phases: [
        { name: 'build', run: `echo '${HOSTILE}'` },
        { name: 'merge', pre: { id: 'quiet', condition }, run: 'true' },
        { name: 'announce', run: 'true' },
      ],
    },
    { id: 'release-7' },
  );
  const isBlocked = async (): Promise<boolean> => (await site.box.pipelines.show('release-7'))?.state === 'blocked';
  await vi.waitUntil(isBlocked, { timeout: 300_000, interval: 50 });
  return { running };
}

async function isInside(page: Page, inner: string, outer: string): Promise<boolean> {
  const [one, other] = [
    await page.locator(inner).first().boundingBox(),
    await page
      .locator(outer)
      .filter({ has: page.locator(inner) })
      .first()
      .boundingBox(),
  ];
  if (one === null || other === null) return false;
  return one.y >= other.y && one.y + one.height <= other.y + other.height && one.x >= other.x;
}

const column = (page: Page, name: string) => page.getByRole('region', { name, exact: true });

describe.skipIf(!hasBrowser)('tasks', () => {
  it('stand in the column of their status, and move as workers claim and complete them', async () => {
    const { page, complaints } = await visit(browser, site, { path: '/tasks' });
    await column(page, 'Waiting').getByRole('link', { name: 'deploy' }).waitFor();
    await column(page, 'Waiting').getByText('after').waitFor();
    await column(page, 'Ready').getByText('priority 5').waitFor();
    const token = await claim('build', 'agent:1');
    await column(page, 'Running').getByText('agent:1').waitFor();
    await page.goto(`${site.url}/#/tasks/build`);
    await page.getByText('Running for', { exact: true }).waitFor();
    expect(await page.getByText('Took', { exact: true }).count()).toBe(0);
    await page.goto(`${site.url}/#/tasks`);
    await site.ask('POST', '/v1/tasks/build/complete', { token, result: { image: 'app:7' } });
    await column(page, 'Done').getByRole('link', { name: 'build' }).waitFor();
    await column(page, 'Ready').getByRole('link', { name: 'deploy' }).waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('have a page with data, result, dependencies and events, all of it as text', async () => {
    const { page, complaints } = await visit(browser, site, { path: '/tasks/build' });
    await page.getByRole('region', { name: 'Data' }).getByText(HOSTILE).waitFor();
    await page.getByRole('region', { name: 'Result' }).getByText('app:7').waitFor();
    await page.getByText('task:completed').waitFor();
    await page.locator('.row.named', { hasText: 'deploy' }).click();
    await page.getByRole('heading', { name: 'task/deploy' }).waitFor();
    await page.getByText('all are complete').waitFor();
    expect(await page.locator('main img, main script').count()).toBe(0);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('that failed are retried by workers after a question, and not by viewers', async () => {
    const { secret } = await site.ask('POST', '/v1/tokens', { name: 'eyes', role: 'viewer' });
    const { page: seen } = await visit(browser, site, { path: '/tasks', token: String(secret) });
    const refused = column(seen, 'Failed').getByRole('button', { name: 'Retry' });
    await refused.waitFor();
    await expect.poll(() => refused.getAttribute('aria-disabled')).toBe('true');
    await seen.context().close();
    const { page, complaints } = await visit(browser, site, { path: '/tasks' });
    await column(page, 'Failed').getByText('<i>no disk</i>').waitFor();
    await column(page, 'Failed').getByRole('button', { name: 'Retry' }).click();
    await page.getByRole('dialog').getByText('The next worker that can do it gets it').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Retry' }).click();
    await column(page, 'Ready').getByRole('link', { name: HOSTILE }).waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('are taken back by administrators from the claim that they saw, and from no other', async () => {
    await site.ask('POST', '/v1/tasks', { id: 'handed-on' });
    const first = await claim('handed-on', 'agent:1');
    const { page, complaints } = await visit(browser, site, { path: '/tasks/handed-on' });
    await page.getByRole('button', { name: 'Take it back…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('agent:1').waitFor();
    await dialog.getByLabel('Reason').fill('too slow');
    await site.ask('POST', '/v1/tasks/handed-on/release', { token: first });
    await claim('handed-on', 'agent:2');
    await dialog.getByText('It has changed since you opened this').waitFor();
    expect(await dialog.getByRole('button', { name: 'Take it back' }).isDisabled()).toBe(true);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Take it back…' }).click();
    await dialog.getByLabel('Reason').fill('still too slow');
    const sent = page.waitForRequest((request) => request.url().endsWith('/release'));
    await dialog.getByRole('button', { name: 'Take it back' }).click();
    expect((await sent).postDataJSON()).toMatchObject({ force: true, token: expect.any(Number) });
    await page.getByText('Ready to be claimed').waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});

describe.skipIf(!hasBrowser)('members', () => {
  it('stand in a ring and a list, with the coordinator, who leads, and what each has; and leave both', async () => {
    const { page, complaints } = await visit(browser, site, { path: '/members' });
    await page.getByRole('img', { name: `2 live members, coordinated by ${HOSTILE}` }).waitFor();
    const row = page.locator('.row.members', { hasText: 'agent:12' });
    await row.getByText(/^release, \d+$/).waitFor();
    const third = await site.box.members.join('worker:3');
    if (!('membership' in third)) throw new Error(third.kind);
    await page.getByRole('img', { name: /^3 live members/ }).waitFor();
    await third.membership.leave();
    await page.getByRole('img', { name: /^2 live members/ }).waitFor();
    await page.locator('.row.members', { hasText: 'worker:3' }).getByText('left').waitFor();
    await row.click();
    await page.getByRole('heading', { name: 'member/agent:12' }).waitFor();
    await page.getByRole('region', { name: 'Metadata' }).getByText(HOSTILE).waitFor();
    await page.locator('.row.named', { hasText: 'lead:release' }).waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});

const VIEWS = [
  '/tasks',
  '/tasks/build',
  '/tasks/deploy',
  '/tasks/nothing',
  '/pipelines',
  '/pipelines/release-7',
  '/members',
  '/members/agent:12',
];

describe.skipIf(!hasBrowser)('axe finds nothing', () => {
  it.each([
    ['dark', WIDE],
    ['light', PHONE],
  ] as const)('in %s at %o', async (theme, viewport) => {
    const { page, complaints } = await visit(browser, site, { theme, viewport });
    const found: string[] = [];
    for (const view of VIEWS) {
      await page.goto(`${site.url}/#${view}`);
      await page.locator('main h1').first().waitFor({ state: 'attached' });
      found.push(...(await violations(page)).map((one) => `${view} ${one}`));
      if (await isTooWide(page)) found.push(`${view} is wide`);
    }
    expect(found).toEqual([]);
    expect(complaints.filter((one) => !one.includes('404'))).toEqual([]);
    await page.context().close();
  });
});

describe.skipIf(!hasBrowser)('the overview', () => {
  it('has each pipeline in its own panel, and nothing over the rest of the page', async () => {
    const { page } = await visit(browser, site);
    await page.locator('.row.lines', { hasText: 'release-7' }).waitFor();
    expect(await isInside(page, '.row.lines', '.panel')).toBe(true);
    await page.context().close();
  });
});

/** The last one cancels what the others look at. */
describe.skipIf(!hasBrowser)('a pipeline', () => {
  it('shows its phases, every reason, what wakes it and its log as text; an administrator cancels it with a reason', async () => {
    const { page, complaints } = await visit(browser, site, { path: '/pipelines' });
    await page.locator('.row.pipelines', { hasText: 'release-7' }).getByText('blocked').waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'pipeline/release-7' }).waitFor();
    await page.getByText('1 of 3 phases done').waitFor();
    await page.locator('[aria-current=step]', { hasText: 'merge' }).getByText('held at the signal').waitFor();
    await expect.poll(() => page.locator('.row.reasons').count()).toBe(2);
    await page.locator('.row.reasons', { hasText: 'agent:7' }).waitFor();
    await page.locator('.row.reasons', { hasText: 'freeze' }).waitFor();
    await page.locator('.wakes', { hasText: 'lock:released' }).waitFor();
    await page.getByRole('region', { name: 'Log of build' }).getByText(HOSTILE).waitFor();
    expect(await page.locator('main img, main script').count()).toBe(0);
    await page.getByRole('button', { name: 'Cancel…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('It ends for good: 2 of 3 phases').waitFor();
    expect(await dialog.getByRole('button', { name: 'Cancel the pipeline' }).isDisabled()).toBe(true);
    await dialog.getByLabel('Reason').fill('superseded');
    await dialog.getByRole('button', { name: 'Cancel the pipeline' }).click();
    await page.getByRole('region', { name: 'Why it ended' }).getByText('superseded').waitFor();
    await expect.poll(() => page.getByRole('button', { name: 'Cancel…' }).count()).toBe(0);
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});
