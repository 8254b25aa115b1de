// Tasks, pipelines and members in a real browser: live, by role, with hostile names, and by the rules of axe.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasBrowser, launch, PHONE, Site, visit, WIDE } from './browser.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const HOSTILE = '<img src=x onerror=alert(1)>';

let browser: Browser;
let site: Site;
beforeAll(async () => {
  if (!hasBrowser) return;
  browser = await launch();
  site = await Site.on();
  await publishTasks();
});
afterAll(async () => {
  await browser?.close();
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

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

async function violations(page: Page): Promise<readonly string[]> {
  // Evaluated by the debugger, which the page's own policy does not bind.
  await page.evaluate(AXE);
  const { violations: found } = await page.evaluate(() =>
    (window as unknown as { axe: { run(): Promise<{ violations: readonly Violation[] }> } }).axe.run(),
  );
  return found.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary}`),
  );
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
    expect(await refused.getAttribute('aria-disabled')).toBe('true');
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
});

const VIEWS = ['/tasks', '/tasks/build', '/tasks/deploy', '/tasks/nothing'];

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
      if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) found.push(`${view} is wide`);
    }
    expect(found).toEqual([]);
    expect(complaints.filter((one) => !one.includes('404'))).toEqual([]);
    await page.context().close();
  });
});
