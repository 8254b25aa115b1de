import { describe, expect, it } from 'vitest';
import type { BoardView } from '../../github/board.ts';
import { unpainted } from '../output.ts';
import { issueLines, issuesOf } from './github.ts';

const NOW = Date.parse('2026-11-17T14:32:00Z');
const PAGE = { width: 120, now: NOW, paint: unpainted };

function lock(issue: number, more: { readonly isStale?: boolean; readonly renewed?: string } = {}): object {
  const { isStale = false, renewed = '2026-11-17T14:31:48Z' } = more;
  const said = { worker_id: `agent:${issue}`, node_id: 'runner-1', claimed_at: '2026-11-17T14:00:00Z' };
  const metadata = { lock: { ...said, heartbeat_last: renewed, task_info: { complexity: 'small' } } };
  return { issue, title: `Title ${issue}`, isLocked: true, assignee: 'ada', token: issue * 10, isStale, metadata };
}

function view(locks: readonly object[], more: Partial<BoardView> = {}): BoardView {
  const known = { repository: 'acme/app', asOf: NOW - 5000, trouble: null, everyMs: 15_000 };
  return { ...known, locks: locks as BoardView['locks'], ...more };
}

describe('locks on GitHub', () => {
  it('are rows with worker, title and last renewal; one that was not renewed in time has a sign and words for it', () => {
    const stale = lock(8, { isStale: true, renewed: '2026-11-17T14:20:00Z' });
    expect(issuesOf(view([lock(7), stale]), NOW)).toMatchObject({
      told: 'acme/app  2 held, 1 not renewed in time',
      rows: [
        { about: 'github/7', mark: '■', cells: ['#7', 'agent:7', 'Title 7'], right: 'renewed 12s' },
        { about: 'github/8', mark: '!', colour: 'yellow', right: 'not renewed for 12m 00s' },
      ],
    });
  });

  it('say that GitHub was not asked yet, that it does not answer, and what to type if no issue is locked', () => {
    expect(issuesOf(view([], { asOf: null }), NOW).told).toBe('acme/app  asking GitHub …');
    expect(issuesOf(view([lock(7)], { trouble: 'no route' }), NOW).told).toBe('acme/app  not read for 5s: no route');
    expect(issuesOf(view([]), NOW).empty).toContain('signalbox github run 42 --repo acme/app');
  });

  it('have a page with what the worker said and the next command; a stale lock can be taken over', () => {
    const lines = issueLines(view([lock(7)]), 'github/7', PAGE)?.join('\n');
    expect(lines).toMatch(/worker +agent:7\nnode +runner-1\naccount +ada\ntoken +70\nheld for +32m 00s\n/);
    expect(lines).toMatch(/complexity +small\n\nWho waits for it: signalbox github queue 7 --repo acme\/app/);
    const stale = issueLines(view([lock(7, { isStale: true })]), 'github/7', PAGE)?.join('\n');
    expect(stale).toContain('signalbox github run 7 --repo acme/app --worker agent:7 --strategy steal-stale');
    expect(issueLines(view([]), 'github/7', PAGE)).toBeUndefined();
  });
});
