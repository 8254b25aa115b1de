/** What every view has to keep: the rules of axe, and the width of its window. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/** What axe finds on the page as it is now. */
export async function violations(page: Page): Promise<readonly string[]> {
  // Evaluated by the debugger, which the page's own policy does not bind.
  await page.evaluate(AXE);
  const { violations: found } = await page.evaluate(() =>
    (window as unknown as { axe: { run(): Promise<{ violations: readonly Violation[] }> } }).axe.run(),
  );
  return found.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary}`),
  );
}

export function isTooWide(page: Page): Promise<boolean> {
  return page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
}
