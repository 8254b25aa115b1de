import { expect, it } from 'vitest';
import type { WitnessedCommand, WitnessEntry } from '../../core/index.ts';
import { Story, storyLines } from './story.ts';

const BEGUN = Date.UTC(2026, 10, 17, 23, 59, 58, 120);

function entry(seq: number, afterMs: number, ...commands: readonly Partial<WitnessedCommand>[]): WitnessEntry {
  const usual = { actor: 'ann', component: 'lock', command: 'acquire', outcome: 'acquired', events: ['lock:acquired'] };
  const rest = { v: 1, revision: 1, previous: '', hash: '' } as const;
  return {
    ...{ ...rest, resource: 'lock/main', seq, time: BEGUN + afterMs },
    commands: commands.map((one) => ({ ...usual, ...one })),
  };
}
const released = { command: 'release', outcome: 'released', events: ['lock:released'] };

it('a story says in words who did what, with a heading for each day', () => {
  const story = new Story();
  const entries = [
    entry(8, 0, { detail: { metadata: { pr: 41 }, mode: 'exclusive', reason: 'deploys 1.2', token: 41 } }),
    entry(
      9,
      1_300,
      { ...released, detail: { mode: 'exclusive', token: 41 } },
      {
        actor: 'agent:bob',
        component: 'cli',
        waitedMs: 7_200,
        trace: 'build-12',
        detail: { mode: 'shared', token: 42 },
      },
    ),
    entry(10, 5_000, {
      ...{ command: 'break', outcome: 'broken', events: ['lock:forced'] },
      detail: { lost: [{ holder: 'agent:bob', token: 42, why: 'forced' }], reason: 'bob\nhangs' },
    }),
    entry(11, 6_000, { actor: '', component: 'maintenance', command: 'observed', outcome: 'lease-ended', events: [] }),
    entry(12, 7_000, { command: 'upgrade', outcome: 'would-deadlock', events: [] }),
  ];
  expect(entries.flatMap((one) => story.next(one)).join('\n')).toBe(
    `2026-11-17, in UTC
    #8  23:59:58.120  ann         acquired, token 41, "deploys 1.2", metadata {"pr":41}
    #9  23:59:59.420  ann         released, token 41
                      agent:bob   acquired, token 42, shared, after 7 s of waiting, trace build-12, through cli
2026-11-18, in UTC
   #10  00:00:03.120  ann         broke the hold, "bob\\nhangs", agent:bob lost token 42 (forced) (lock:forced)
   #11  00:00:04.120  maintenance  lease ended, observed by maintenance
   #12  00:00:05.120  ann          upgrade: would deadlock`,
  );
});

it('a line that stands alone has the date and the resource, and what is entered as its hash stays hidden', () => {
  const sha256 = 'ab'.repeat(32);
  const told = (detail: WitnessedCommand['detail'] & {}): readonly string[] =>
    storyLines(entry(1, 0, { command: 'publish', outcome: 'published', events: [], detail }));
  const where = '2026-11-17 23:59:58.120Z  lock/main #1  ann';
  expect(told({ data: { sha256, bytes: 21, salt: '00' } })).toEqual([`${where}  published, data of 21 bytes, hidden`]);
  expect(told({ data: { sha256, bytes: 2008 } })).toEqual([
    `${where}  published, data of 2008 bytes, SHA-256 abababababab…`,
  ]);
});

it('names an entry of the user by its event', () => {
  const own = entry(1, 0, { component: 'deploy', command: 'record', outcome: 'recorded', events: ['deploy:started'] });
  expect(storyLines({ ...own, resource: 'component/deploy' })[0]).toMatch(
    /component\/deploy #1 {2}ann {2}deploy:started$/,
  );
});
