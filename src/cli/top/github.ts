/** Locks on GitHub Issues, as the page has them: a section with the locks of the store, and a page for each. */
import type { BoardView } from '../../github/board.ts';
import { joined, printable } from '../output.ts';
import { wrapped } from '../pipeline/columns.ts';
import { factLines } from '../table.ts';
import type { Page } from './details.ts';
import { counted } from './holds.ts';
import { age, type Row, type Section } from './row.ts';

type Issue = BoardView['locks'][number];

/** Names an issue on the screen, as `lock/main` names a lock. */
const KIND = 'github/';

export function isIssue(about: string): boolean {
  return about.startsWith(KIND);
}

export function issuesOf({ repository, locks, asOf, trouble }: BoardView, now: number): Section {
  const stale = locks.filter(({ isStale }) => isStale).length;
  const old = asOf === null ? '' : ` for ${age(now - asOf)}`;
  const state =
    trouble !== null
      ? `not read${old}: ${trouble}`
      : asOf === null
        ? 'asking GitHub …'
        : counted([`${locks.length} held`, `${stale} not renewed in time`]);
  return {
    title: 'On GitHub',
    told: joined([repository ?? '', state], '  '),
    rows: locks.map((one) => issueRow(one, now)),
    empty:
      trouble === null && asOf !== null
        ? `no issue is locked; try: signalbox github run 42 --repo ${repository} --worker agent:7 -- ./fix.sh`
        : state,
    key: '2',
  };
}

function issueRow({ issue, title, isStale, metadata }: Issue, now: number): Row {
  const lock = metadata?.lock;
  const renewed = timeOf(lock?.heartbeat_last);
  return {
    id: `${KIND}${issue}`,
    about: `${KIND}${issue}`,
    mark: isStale ? '!' : '■',
    colour: isStale ? 'yellow' : undefined,
    cells: [`#${issue}`, lock?.worker_id ?? '', title ?? ''],
    right: renewed === undefined ? '' : `${isStale ? 'not renewed for' : 'renewed'} ${age(now - renewed)}`,
    since: timeOf(lock?.claimed_at),
  };
}

/** Undefined if the issue is not locked, or GitHub has not told yet. */
export function issueLines(view: BoardView, about: string, { width, now }: Page): readonly string[] | undefined {
  const one = view.locks.find(({ issue }) => `${KIND}${issue}` === about);
  if (one === undefined) return undefined;
  const { issue, title, assignee, token, isStale, metadata } = one;
  const lock = metadata?.lock;
  const [since, renewed] = [timeOf(lock?.claimed_at), timeOf(lock?.heartbeat_last)];
  const told = (at: number | undefined, after: string): string => (at === undefined ? '' : `${age(now - at)}${after}`);
  const facts: readonly (readonly [string, string])[] = [
    ['title', title ?? ''],
    ['worker', lock?.worker_id ?? ''],
    ['node', lock?.node_id ?? ''],
    ['account', assignee ?? 'none is assigned'],
    ['token', String(token)],
    ['held for', told(since, '')],
    ['renewed', told(renewed, isStale ? ' ago, which is too long: another worker may take it over' : ' ago')],
    ...Object.entries(lock?.task_info ?? {}).flatMap(([what, is]): (readonly [string, string])[] =>
      typeof is === 'string' || typeof is === 'number' ? [[what.replaceAll('_', ' '), String(is)]] : [],
    ),
  ];
  const at = `--repo ${view.repository}`;
  const next = isStale
    ? `signalbox github run ${issue} ${at} --worker agent:7 --strategy steal-stale -- ./fix.sh`
    : `signalbox github queue ${issue} ${at}`;
  return [...factLines(facts), '', isStale ? `To take it over: ${next}` : `Who waits for it: ${next}`].flatMap((line) =>
    wrapped(printable(line), Math.max(12, width - 2)),
  );
}

function timeOf(text: string | undefined): number | undefined {
  const at = Date.parse(text ?? '');
  return Number.isFinite(at) ? at : undefined;
}
