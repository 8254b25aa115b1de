// What a store says of child processes is a claim: nothing is ended because of it that is not proven to be such a child, and
// this user's.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import {
  barTo,
  identityFrom,
  MARK,
  type Offspring,
  offspringFrom,
  remainsOf,
  signalRemains,
} from '../../src/host/index.ts';
import { offspringOf } from '../../src/host/offspring.ts';
import { thisHost, thisProcess } from '../../src/host/process.ts';
import type { ChildNote } from '../../src/runtime/child-note.ts';
import type { Children } from '../../src/runtime/processes/children.ts';
import { clearLeftovers } from '../../src/runtime/processes/leftovers.ts';
import { built, ENTRY, isAlive } from '../support/run-processes.ts';

const IDENTITY = { boot: 'b-1', space: 'pid:[1]', pid: 42, start: '100' };
const CHILD = { pid: 42, leads: true, mark: 'm', process: { ...IDENTITY, group: true } };

describe('what a store says of a process', () => {
  it.each([
    undefined,
    null,
    'text',
    [],
    {},
    { ...IDENTITY, pid: 0 },
    { ...IDENTITY, pid: -1 },
    { ...IDENTITY, pid: 1.5 },
    { ...IDENTITY, pid: '42' },
    { ...IDENTITY, pid: 2 ** 22 + 1 },
    { ...IDENTITY, start: 100 },
    { ...IDENTITY, start: '../../1' },
    { ...IDENTITY, boot: '' },
    { ...IDENTITY, boot: 'x'.repeat(201) },
    { ...IDENTITY, space: 'a\nb' },
    { ...IDENTITY, group: 'yes' },
    { ...IDENTITY, timeSpace: 7 },
  ])('is not taken for an identity: %j', (claim) => {
    expect(identityFrom(claim)).toBeUndefined();
  });

  it.each([
    null,
    { ...CHILD, pid: 1, process: { ...CHILD.process, pid: 1 } },
    { ...CHILD, pid: 0 },
    { ...CHILD, pid: 43 },
    { ...CHILD, leads: 'yes' },
    { ...CHILD, mark: '' },
    { ...CHILD, mark: 'a.b' },
    { ...CHILD, session: -1 },
    { ...CHILD, process: {} },
  ])('is not taken for a child: %j', (claim) => {
    expect(offspringFrom(claim)).toBeUndefined();
  });

  it('is taken as it is where it is sound', () => {
    expect(identityFrom(IDENTITY)).toBe(IDENTITY);
    expect(identityFrom({ ...IDENTITY, pid: 1 })).toMatchObject({ pid: 1 });
    expect(offspringFrom(CHILD)).toBe(CHILD);
    expect(identityFrom(thisProcess() ?? IDENTITY)).toBeDefined();
  });
});

// Only Linux tells which process is which.
describe.skipIf(thisHost() === undefined)('a process that a note names', () => {
  async function sleeper(env: NodeJS.ProcessEnv, leads = true): Promise<Offspring> {
    const child = spawn('sleep', ['1000'], {
      detached: leads,
      stdio: 'ignore',
      env: { PATH: process.env['PATH'], ...env },
    });
    await once(child, 'spawn');
    onTestFinished(() => void child.kill('SIGKILL'));
    return offspringOf(child.pid as number, leads, 'm');
  }
  const bar = (child: Offspring, isShared: boolean): unknown => {
    const remains = remainsOf(child);
    return remains.kind === 'some' ? barTo(child, remains.pids, { isShared }) : remains;
  };

  it('is ended in a store of our own, and in a shared one only if it bears the mark', async () => {
    const marked = await sleeper({ [MARK]: 'outer.m' });
    const unmarked = await sleeper({});
    expect([bar(marked, false), bar(marked, true)]).toEqual([undefined, undefined]);
    expect([bar(unmarked, false), bar(unmarked, true)]).toEqual([undefined, { kind: 'unproven' }]);
    expect(signalRemains(unmarked, remainsOf(unmarked), 'SIGKILL', { isShared: true })).toBe(false);
    expect(isAlive(unmarked.pid)).toBe(true);
  });

  it('is not ended if it does not lead the session that the note says it leads', async () => {
    const child = await sleeper({ [MARK]: 'm' }, false);
    const claimed: Offspring = { ...child, leads: true };
    expect(barTo(claimed, [child.pid], {})).toEqual({ kind: 'unproven' });
    expect(signalRemains(claimed, { kind: 'some', pids: [child.pid], isCertain: true }, 'SIGKILL')).toBe(false);
    expect(isAlive(child.pid)).toBe(true);
  });

  it('is never this process, nor one that it runs inside of', () => {
    for (const pid of [process.pid, process.ppid]) {
      const child = { ...offspringOf(pid, false, 'm') };
      expect(barTo(child, [pid], {})).toEqual({ kind: 'inside' });
      expect(signalRemains(child, { kind: 'some', pids: [pid], isCertain: true }, 'SIGCONT')).toBe(false);
    }
  });
});

// The same for a run and for the command of a pipeline: both begin only if nothing is left.
describe.skipIf(thisHost() === undefined)('a leftover that may not be ended', () => {
  it('is waited for, then given up and named; its note stays, and it lives', async () => {
    const child = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore', env: { PATH: process.env['PATH'] } });
    await once(child, 'spawn');
    onTestFinished(() => void child.kill('SIGKILL'));
    const forgotten: string[] = [];
    const children = {
      areOfOneMachine: false,
      areOfSeveralUsers: true,
      forget: (keys: readonly string[]) => Promise.resolve(void forgotten.push(...keys)),
    } as unknown as Children;
    const note: ChildNote = {
      ...{ hold: '1', token: 1, holder: 'old', lease: '1', graceMs: 1, outlivesHold: false, at: Date.now() },
      child: offspringOf(child.pid as number, true, 'm'),
    };
    const told: string[] = [];
    const left = await clearLeftovers(
      { leftovers: [{ key: 'k', resource: 'lock/a', note, isLookedAfter: false }], unreadable: [] },
      {
        children,
        graceMs: 1,
        unendableMs: 20,
        tell: (line) => void told.push(line),
        cut: new AbortController().signal,
      },
    );
    expect(left).toEqual([`lock/a: waiting for process ${child.pid}, left behind by old`]);
    expect(told).toEqual([`${left[0]}; signalbox cannot prove that it is the same process; if it is, end it by hand`]);
    expect(forgotten).toEqual([]);
    expect(isAlive(child.pid as number)).toBe(true);
  });
});

interface Told {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Processes of another user, and a namespace in which everything may be ended, need root. */
describe.skipIf(process.geteuid?.() !== 0)('a note that somebody planted', () => {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-planted-'));
  let told: Record<string, Told> & { inside: never; alive: never; orphan: Told & { isAlive: boolean } };
  beforeAll(() => {
    built();
    const program = fileURLToPath(new URL('programs/planted-notes.mjs', import.meta.url));
    const inside = [
      '-pf',
      '--mount-proc',
      '--kill-child',
      'setsid',
      process.execPath,
      program,
      join(directory, 'store'),
      ENTRY,
    ];
    const env = { ...process.env, SIGNALBOX_URL: undefined, SIGNALBOX_HOLDER: undefined };
    const { stdout, stderr } = spawnSync('unshare', inside, { encoding: 'utf8', env, timeout: 280_000 });
    if (stdout === '') throw new Error(`everything in the namespace was ended: ${stderr}`);
    told = JSON.parse(stdout) as typeof told;
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it.each(['the first process', 'every process', 'a path', 'another process', 'nothing', 'no child'])(
    'with %s as its child is named and ignored, and stops nothing',
    (name) => {
      const { code, stdout, stderr } = told[name] as Told;
      expect({ code, stdout }).toEqual({ code: 0, stdout: 'ran\n' });
      expect(stderr).toContain(
        `the note of a child process at c/lock/${encodeURIComponent(name)}/planted is not in a form`,
      );
    },
  );

  it('that names a process of another user ends nothing: the run names the owner, and gives up in time', () => {
    const { code, stdout, stderr } = told['theirs'] as Told;
    expect({ code, stdout }).toEqual({ code: 75, stdout: '' });
    expect(stderr).toMatch(
      /waiting for process \d+, left behind by planted.*it belongs to nobody \(uid 65534\), who has to end it/,
    );
  });

  it('that calls a process the leader of a session is void if it leads none', () => {
    expect(told['member']).toMatchObject({ code: 0, stdout: 'ran\n' });
  });

  it('that names the parent of a run does not make the run end its own parent', () => {
    expect(told.inside).toMatch(/this process is itself part of what planted.* left behind[^]*ran\ncode 0\n$/);
  });

  it('leaves every process alone that it names', () => {
    expect(told.alive).toEqual([true, true, true]);
  });

  it('brings no escape sequence and no change of direction to a terminal', () => {
    expect(JSON.stringify(told)).not.toMatch(/\\u001b|\u202e/);
  });

  it('is told from a true one: what root started as another user is ended by the next run', () => {
    expect(told.orphan).toMatchObject({ code: 0, stdout: 'ran\n', isAlive: false });
  });
});
