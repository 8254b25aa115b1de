// Locks on GitHub Issues in the dashboard, read from the GitHub that `signalbox github fake` serves.

import type { Browser } from 'playwright-core';
import { LockManager } from 'signalbox/github';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { type LocalServer, serveLocalGitHub } from '../../src/github/local/serve.ts';
import { GitHubBoard } from '../../src/github/board.ts';
import { hasBrowser, launch, Site, visit } from './browser.ts';

let browser: Browser;
let github: LocalServer;
let locks: LockManager;
let site: Site;
beforeAll(async () => {
  if (!hasBrowser) return;
  // It is looked at more often than GitHub allows, and for as long as a busy machine takes.
  const limits = { requestsPerHour: 1e6, pointsPerMinute: 1e6, contentPerMinute: 1e6, contentPerHour: 1e6 };
  github = await serveLocalGitHub({ limits });
  vi.stubEnv('GITHUB_TOKEN', 'local');
  vi.stubEnv('GITHUB_API_URL', github.url);
  for (const [issue, title] of [
    [7, 'Seven, <b>which is bold</b>'],
    [8, 'Eight'],
  ] as const) {
    github.github.repository.addIssue(issue, title, Date.now());
  }
  locks = new LockManager({ githubRepo: 'local/repository' });
  await locks.acquireLock(7, { workerId: 'agent:1', nodeId: 'runner-1', taskInfo: { complexity: 'small' } });
  // It looks at GitHub all the time, so that the page hears of a change without a wait.
  site = await Site.on('memory:', {
    github: new GitHubBoard('local/repository', locks, systemClock, 50),
  });
  await site.hold('in-the-store', 'agent:5');
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  await site?.close();
  await locks?.[Symbol.asyncDispose]();
  await github?.close();
  vi.unstubAllEnvs();
});

describe.skipIf(!hasBrowser)('locks on GitHub', () => {
  it('are listed with the locks of the store, found by the same filter, and each has a page', async () => {
    const { page, complaints } = await visit(browser, site, { path: '/locks' });
    const issue = page.locator('[data-row="github/7"]');
    const stored = page.locator('[data-row="lock/in-the-store"]');
    await issue.getByText('agent:1').first().waitFor();
    await stored.waitFor();
    expect(await issue.textContent()).toContain('<b>which is bold</b>');

    await page.getByLabel('Filter by name, holder or token').fill('agent:5');
    await expect.poll(() => issue.count()).toBe(0);
    expect(await stored.count()).toBe(1);
    await page.getByLabel('Filter by name, holder or token').fill('#7');
    await issue.waitFor();
    await expect.poll(() => stored.count()).toBe(0);
    await page.getByLabel('Filter by name, holder or token').fill('');
    await page.getByRole('button', { name: 'On GitHub' }).click();
    await expect.poll(() => stored.count()).toBe(0);
    await expect.poll(() => page.url()).toContain('where=github');

    await issue.click();
    await page.getByRole('heading', { name: 'github/7' }).waitFor();
    await page.getByText('runner-1').first().waitFor();
    await page.getByText('small').waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('come and go on an open page', async () => {
    const { page, complaints } = await visit(browser, site, { path: '/locks' });
    await page.locator('[data-row="github/7"]').waitFor();
    await locks.acquireLock(8, { workerId: 'agent:2', nodeId: 'runner-2' });
    await page.locator('[data-row="github/8"]', { hasText: 'agent:2' }).waitFor();
    await locks.releaseLock(8, 'agent:2');
    await expect.poll(() => page.locator('[data-row="github/8"]').count()).toBe(0);
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});
