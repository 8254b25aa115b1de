import { describe, expect, it } from 'vitest';
import type { Survey, SurveyedLockHold, SurveyedWaiter } from '../runtime/observe/survey/index.ts';
import type { Json } from '../core/index.ts';
import { surveyFrom, surveyJson, type SurveyJson } from '../json/survey.ts';
import { unpainted } from './output.ts';
import { PLAIN } from './table.ts';
import { stateOf, whoLines } from './who-table.ts';

const NOW = Date.UTC(2026, 0, 1, 12);

const hold: SurveyedLockHold = {
  id: 'p.1',
  holder: 'agent:7',
  token: 17,
  acquiredAt: NOW - 180_000,
  reason: 'merging change 42',
  metadata: undefined,
  maxHoldMs: undefined,
  isAttached: true,
  session: { id: 'p', host: 'build-3', pid: 4711, user: 'ada', directory: '/srv/app', about: null },
  takenBy: undefined,
  endsWithPid: undefined,
  orphans: [],
  health: 'renewed',
  isStale: false,
  lease: { ttlMs: 15_000, remainingMs: 12_000, renewedMs: 3000 },
  isWarned: false,
  mode: 'exclusive',
};
const waiter: SurveyedWaiter = {
  id: 'q.1',
  holder: 'agent:9',
  mode: 'exclusive',
  weight: undefined,
  priority: 5,
  reason: 'x'.repeat(200),
  metadata: undefined,
  since: NOW - 40_000,
  position: 1,
  isGrowing: false,
  waitsFor: ['agent:7'],
  session: undefined,
};
const survey: Survey = {
  revision: 20,
  at: NOW,
  locks: [
    { name: 'free', resource: 'lock/free', token: 3, onStale: 'reclaim', limits: {}, holds: [], waiting: [] },
    {
      name: 'main',
      resource: 'lock/main',
      token: 17,
      onStale: 'reclaim',
      limits: {},
      holds: [hold],
      waiting: [waiter],
    },
  ],
  semaphores: [],
  sessions: [],
  maintainer: undefined,
  malformed: [],
};

describe('who', () => {
  it('shows on a terminal of 80 columns who holds what, since when, why, and who waits for whom', () => {
    expect(whoLines(survey, { width: 80, paint: unpainted })).toEqual([
      'RESOURCE   WHO         SINCE  TOKEN  AS         STATE',
      'lock/main  agent:7     3 min  17     exclusive  renewed 3 s ago',
      '  merging change 42',
      '  ada in /srv/app · pid 4711 on build-3',
      '           1. agent:9  40 s          exclusive  waiting behind agent:7',
      `  ${'x'.repeat(77)}`,
      `  ${'x'.repeat(77)}`,
      `  ${'x'.repeat(46)}`,
      '  priority 5',
    ]);
  });

  it('is a list where the table would not fit, and cuts neither a name nor a reason', () => {
    const reason = 'merging change 42, because the hotfix for the login page cannot wait';
    const metadata = { command: 'git' };
    const [free, main] = survey.locks;
    if (free === undefined || main === undefined) throw new Error();
    const locks = [{ ...main, holds: [{ ...hold, reason, metadata }], waiting: [{ ...waiter, reason: undefined }] }];
    expect(whoLines({ ...survey, locks }, { width: 50, paint: unpainted })).toEqual([
      'lock/main',
      '  agent:7  for 3 min, renewed 3 s ago',
      '    merging change 42, because the hotfix for the',
      '    login page cannot wait',
      '    exclusive · runs git · ada in /srv/app ·',
      '    pid 4711 on build-3 · token 17',
      '  1. agent:9  waiting 40 s behind agent:7',
      '    exclusive · priority 5',
    ]);
  });

  it('never shows the pid of a server for that of its client', () => {
    const server = { ...{ id: 's', host: 'vm', pid: 100, user: 'root' }, directory: '/srv', about: { isServer: true } };
    const locks = (metadata: Json | undefined): Survey['locks'] => [
      {
        ...(survey.locks[1] as (typeof survey.locks)[number]),
        holds: [{ ...hold, isAttached: false, session: undefined, takenBy: server, metadata }],
        waiting: [{ ...waiter, session: server, metadata, priority: 0, reason: undefined }],
      },
    ];
    const lines = (metadata?: Json): readonly string[] => {
      const known = { ...survey, locks: locks(metadata) };
      const shown = whoLines(known, PLAIN);
      // The same through the server, whose JSON does not say what a session is about.
      expect(whoLines(surveyFrom(JSON.parse(JSON.stringify(surveyJson(known))) as SurveyJson), PLAIN)).toEqual(shown);
      return shown;
    };
    const run = { command: 'sleep', pid: 4711, host: 'laptop' };
    expect(lines(run).at(-1)?.trim()).toBe('runs sleep · pid 4711 on laptop');
    expect(lines(run).join()).not.toMatch(/root|srv|vm|100/);
    expect(lines().join()).not.toMatch(/root|srv|vm|pid/);
  });

  it('does not say that a command runs where its turn was not collected', () => {
    const kept = { ...hold, isAttached: false, isCollected: false, metadata: { command: 'echo' } };
    const locks = [{ ...(survey.locks[1] as (typeof survey.locks)[number]), holds: [kept], waiting: [] }];
    const text = whoLines({ ...survey, locks }, PLAIN).join('\n');
    expect(text).toContain('not collected yet: its turn lapses in 12 s');
    expect(text).toContain('its turn is kept for the ticket; nothing runs yet');
    expect(text).not.toContain('runs echo');
  });

  it('names what still runs instead of a process that is gone', () => {
    const gone = { ...hold, health: 'process-gone' as const, orphans: [4712] };
    const locks = [{ ...(survey.locks[1] as (typeof survey.locks)[number]), holds: [gone], waiting: [] }];
    const text = whoLines({ ...survey, locks }, { width: 100, paint: unpainted }).join('\n');
    expect(text).toContain('its process is gone but its command still runs (pid 4712); its lease ends in 12 s');
    expect(text).not.toContain('4711');
  });

  it('says of a hold whose lease has ended what ends the command that it left running', () => {
    const silent = { ...hold, health: 'silent' as const, lease: undefined, isStale: true, orphans: [4712] };
    const locks = [{ ...(survey.locks[1] as (typeof survey.locks)[number]), holds: [silent], waiting: [] }];
    const text = whoLines({ ...survey, locks }, PLAIN).join('\n');
    expect(text).toContain('silent: lease ended');
    expect(text).toContain(
      'its lease has ended, but its command still runs (pid 4712); the next holder ends the command before it begins',
    );
    expect(text).not.toContain('its lease ends');
  });

  it('cuts nothing and tells exact times where nobody looks at it', () => {
    const lines = whoLines(survey, PLAIN);
    expect(lines[1]).toContain('2026-01-01T11:57:00.000Z (3 min)');
    expect(lines[4]).toContain('x'.repeat(200));
  });

  it('says so when there is nothing to show', () => {
    expect(whoLines({ ...survey, locks: [] }, PLAIN)).toEqual(['Nothing is held or waited for.']);
  });

  it.each([
    [{ ...hold, isAttached: false }, 'lasts 12 s more'],
    [{ ...hold, isAttached: false, isCollected: false }, 'not collected yet: its turn lapses in 12 s'],
    [
      { ...hold, health: 'overdue', lease: { ttlMs: 15_000, remainingMs: 3000, renewedMs: 12_000 } },
      'overdue, renewed 12 s ago',
    ],
    [{ ...hold, health: 'slow' }, 'slow: past its time limit'],
    [{ ...hold, health: 'silent' }, 'silent: lease ended'],
    [{ ...hold, health: 'process-gone' }, 'process gone'],
  ] as const)('tells apart how a hold fares (%#)', (one, text) => {
    expect(stateOf(one)).toBe(text);
  });
});
