// The users of the simulator in real processes, on one store of the machine, in real time.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { open } from 'signalbox';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { bundleOf } from '../simulation/mutants.ts';
import { type Belief, meetings } from './beliefs.ts';

const PROGRAM = 'test/embedded/programs/believer.ts';
const AT_ONCE = 3;
/** So many of each: killed, and stopped for longer than their lease lasts. */
const KILLS = 6;
const STOPS = 6;
const LEASE_MS = 2000;

const use: Belief = { what: 'uses', at: 0, believer: '', resource: 'lock/a', id: '' };

describe('beliefs of several processes', () => {
  const one = { ...use, believer: 'one', id: '1' };
  const other = { ...use, believer: 'other', id: '2' };

  it('meet where one acts between two acts of another', () => {
    expect(
      meetings([
        { ...one, at: 1 },
        { ...other, at: 2 },
        { ...one, at: 3 },
      ]),
    ).toHaveLength(1);
  });

  it('do not meet where the other has left, may read too, has other slots, or hears late', () => {
    const left: Belief = { ...one, at: 2, what: 'left' };
    expect(meetings([{ ...one, at: 1 }, left, { ...other, at: 3 }])).toEqual([]);
    const between = (change: Partial<Belief>): readonly string[] =>
      meetings([1, 2, 3].map((at) => ({ ...(at === 2 ? other : one), at, ...change })));
    expect(between({})).toHaveLength(1);
    expect(between({ isShared: true })).toEqual([]);
    expect(between({ hearsLate: true })).toEqual([]);
    const slots = [[0, 1], [2], [0, 1]].map((slots, at) => ({ ...(at === 1 ? other : one), at, slots }));
    expect(meetings(slots)).toEqual([]);
  });
});

/** Processes that run the users of the simulator on a store of their own. */
class Crew {
  readonly #directory = mkdtempSync(join(tmpdir(), 'signalbox-beliefs-'));
  readonly store = join(this.#directory, 'store');
  readonly #running = new Set<ChildProcess>();
  readonly #logs: string[] = [];
  readonly #program: string;
  #granted = 0;

  constructor(program: string) {
    this.#program = program;
  }

  async start(): Promise<void> {
    const name = `p${this.#logs.length}`;
    const log = join(this.#directory, `${name}.log`);
    this.#logs.push(log);
    const child = fork(this.#program, [this.store, log, name, String(this.#logs.length)], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      execArgv: [],
    });
    this.#running.add(child);
    const ready = new Promise<void>((resolve) => {
      child.on('message', (message) => {
        if (message === 'granted') this.#granted += 1;
        else resolve();
      });
    });
    await Promise.race([ready, once(child, 'exit')]);
  }

  async kill(): Promise<void> {
    await this.#end(this.#victim());
  }

  /** For longer than its lease lasts. */
  async stopForLong(): Promise<void> {
    const victim = this.#victim();
    victim.kill('SIGSTOP');
    await pause(LEASE_MS * 1.5);
    victim.kill('SIGCONT');
  }

  #victim(): ChildProcess {
    const [victim] = this.#running;
    if (victim === undefined) throw new Error('nobody is there');
    // Another one the next time.
    this.#running.delete(victim);
    this.#running.add(victim);
    return victim;
  }

  async #end(child: ChildProcess): Promise<void> {
    this.#running.delete(child);
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  /** Until somebody was granted something: what is done to a process that does nothing shows nothing. */
  async busy(): Promise<void> {
    const before = this.#granted;
    while (this.#granted < before + 5) await pause(10);
  }

  async end(): Promise<void> {
    await Promise.all([...this.#running].map((child) => this.#end(child)));
  }

  told(): readonly Belief[] {
    const lines = this.#logs.filter(existsSync).flatMap((log) => readFileSync(log, 'utf8').split('\n').slice(0, -1));
    return lines.map((line) => JSON.parse(line) as Belief);
  }

  async leave(): Promise<void> {
    await this.end();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

describe('processes on one machine that are killed, stopped and stalled', () => {
  let crew: Crew;

  beforeAll(async () => {
    crew = new Crew(await bundleOf(PROGRAM, 'believer', []));
    await Promise.all(Array.from({ length: AT_ONCE }, () => crew.start()));
    for (let harm = 0; harm < KILLS + STOPS; harm++) {
      await crew.busy();
      if (harm % 2 === 1) await crew.stopForLong();
      else {
        await crew.kill();
        await crew.start();
      }
    }
    await crew.busy();
    await crew.end();
  });

  afterAll(() => crew.leave());

  it('never believe at once in what excludes each other', () => {
    const beliefs = crew.told();
    expect(new Set(beliefs.map(({ resource }) => resource)).size).toBeGreaterThan(3);
    expect(beliefs.filter(({ what }) => what === 'uses').length).toBeGreaterThan(100);
    expect(meetings(beliefs)).toEqual([]);
  });

  it('meet nothing that users do not expect', () => {
    const failed = crew.told().filter(({ what }) => what === 'failed');
    expect(failed.map(({ resource }) => resource)).toEqual([]);
  });

  it('leave nothing held', async () => {
    const box = await open(`file:${crew.store}`);
    for (const name of ['a', 'b']) await box.lock(name).configure({ onStale: 'reclaim' });
    for (const name of ['a', 'b']) await (await box.lock(name).acquire({ waitMs: 60_000 })).release();
    await box.close();
  });
});

describe('a bug that is planted', () => {
  it('shows as two that believe at once: a session that does not notice how long it stood still', async () => {
    const file = 'runtime/session/session.ts';
    const planted = [
      {
        file,
        right:
          'if (hasPassed(this.#clock, this.#sent, this.#validMs, isOfOneMachine(this.#host.store), monotonic, now)) {',
        wrong: 'if (this.ttlMs < 0) {',
      },
      { file, right: 'if (lease === null) {', wrong: 'if (this.ttlMs < 0) {' },
    ];
    const crew = new Crew(await bundleOf(PROGRAM, 'believer-that-never-expires', planted));
    onTestFinished(() => crew.leave());
    await Promise.all(Array.from({ length: AT_ONCE }, () => crew.start()));
    let found: readonly string[] = [];
    for (let stop = 0; stop < 4 * STOPS && found.length === 0; stop++) {
      await crew.busy();
      await crew.stopForLong();
      await crew.busy();
      found = meetings(crew.told());
    }
    expect(found).not.toEqual([]);
  });
});
