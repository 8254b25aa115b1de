import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { MARK } from './mark.ts';
import { type Offspring, offspringOf, remainsOf, signalRemains } from './offspring.ts';
import {
  hasLeftNothing,
  identify,
  isProvenGone,
  lastPid,
  living,
  type ProcessIdentity,
  readStat,
  thisHost,
} from './process.ts';

describe.skipIf(thisHost() === undefined)('what is left of a child', () => {
  const started: number[] = [];
  afterEach(() => {
    for (const pid of started.splice(0)) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has gone.
      }
    }
  });

  /** Prints the pid of a process that it starts, then waits for a line and ends. */
  const WITH_CHILD = 'sleep 1000 >/dev/null & echo $!; read -r line';

  async function start(
    script: string,
    leads: boolean,
    mark = 'm',
  ): Promise<{ child: ChildProcess; inner: number; own: Offspring }> {
    const env = { PATH: process.env['PATH'], [MARK]: `outer.${mark}` };
    const child = spawn('sh', ['-c', script], { detached: leads, stdio: ['pipe', 'pipe', 'inherit'], env });
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const inner = Number(line.toString());
    started.push(child.pid as number, inner);
    // Until it has become `sleep`, the system may show nothing of its environment for a moment.
    const shows = (file: string): string => readFileSync(`/proc/${inner}/${file}`, 'latin1');
    while (shows('comm') !== 'sleep\n' || shows('environ') === '') await new Promise(setImmediate);
    return { child, inner, own: offspringOf(child.pid as number, leads, mark) };
  }
  const ended = async (child: ChildProcess): Promise<void> => {
    child.stdin?.end('\n');
    await once(child, 'exit');
  };
  const gone = async (own: Offspring): Promise<void> => {
    while (remainsOf(own).kind !== 'none') await new Promise((resolve) => setTimeout(resolve, 5));
  };

  it.each([true, false])('is the child and what it started, with a group of its own or not: %s', async (leads) => {
    const { child, inner, own } = await start(WITH_CHILD, leads);
    const remains = remainsOf(own);
    expect(remains).toMatchObject({ kind: 'some', isCertain: true });
    expect(remains.kind === 'some' && [...remains.pids].sort()).toEqual([child.pid, inner].sort());
  });

  it.each([true, false])('is found when the child itself has gone, by its mark: %s', async (leads) => {
    const { child, inner, own } = await start(WITH_CHILD, leads);
    await ended(child);
    expect(remainsOf(own)).toEqual({ kind: 'some', pids: [inner], isCertain: true });
    expect(signalRemains(own, remainsOf(own), 'SIGTERM')).toBe(true);
    await gone(own);
  });

  it('is nothing, without a look at every process, if nothing was started since the child', async () => {
    const { child } = await start(WITH_CHILD, true);
    const pid = child.pid as number;
    expect(hasLeftNothing(pid, pid)).toBe(false);
    await ended(child);
    expect(hasLeftNothing(pid)).toBe(false);
    const alone = spawn('true', { detached: true });
    await once(alone, 'exit');
    const leader = alone.pid as number;
    // Other processes of the machine may start some meanwhile, so the test says which pid was the last.
    expect([leader, leader + 1].map((last) => hasLeftNothing(leader, last))).toEqual([true, false]);
    expect(lastPid()).toBeGreaterThan(0);
  });

  it.each([true, false])(
    'is found by the note of an older version, which names no time namespace: %s',
    async (leads) => {
      const { child, inner, own } = await start(WITH_CHILD, leads);
      const { timeSpace: _, ...process } = own.process as ProcessIdentity;
      const remains = remainsOf({ ...own, process });
      expect(remains).toMatchObject({ kind: 'some', isCertain: true });
      expect(remains.kind === 'some' && [...remains.pids].sort()).toEqual([child.pid, inner].sort());
      // Whose start time may be another one's.
      if (leads) expect(remainsOf({ ...own, process: { ...process, start: '1' } })).toEqual({ kind: 'out-of-sight' });
    },
  );

  it('is also what has a process group of its own, as jobs of a shell or under timeout', async () => {
    const script = `timeout 1000 sh -c 'echo $$; exec sleep 1000 >/dev/null' & read -r line`;
    const { child, inner, own } = await start(script, true);
    const around = readStat(inner)?.group ?? 0;
    started.push(around);
    expect(around).not.toBe(child.pid);
    await ended(child);
    expect(own.process !== undefined && isProvenGone(own.process)).toBe(false);
    // In the order of their numbers, which begin anew from time to time.
    const pids = [around, inner].sort((one, other) => one - other);
    expect(remainsOf(own)).toEqual({ kind: 'some', pids, isCertain: true });
    expect(signalRemains(own, remainsOf(own), 'SIGTERM')).toBe(true);
    await gone(own);
    expect(own.process !== undefined && isProvenGone(own.process)).toBe(true);
  });

  it('is nobody that merely has the same number by now', async () => {
    const { child, inner, own } = await start(WITH_CHILD, true);
    const process = identify(child.pid as number);
    expect(process).toBeDefined();
    if (process === undefined) return;
    const earlier: Offspring = { ...own, process: { ...process, start: '1', group: true } };
    expect(remainsOf(earlier)).toEqual({ kind: 'none' });
    const alone: Offspring = { ...earlier, leads: false, mark: 'another' };
    expect(remainsOf(alone)).toEqual({ kind: 'none' });
    expect(inner).toBeGreaterThan(0);
  });

  it('is not certain where the child has gone and nobody bears the mark; then nobody is signalled', async () => {
    const { child, inner, own } = await start(WITH_CHILD, true);
    await ended(child);
    const remains = remainsOf({ ...own, mark: 'another' });
    expect(remains).toEqual({ kind: 'some', pids: [inner], isCertain: false });
    expect(signalRemains(own, remains, 'SIGKILL')).toBe(false);
    expect(remainsOf(own).kind).toBe('some');
  });

  it('cannot be seen from another boot or another namespace', async () => {
    const { own } = await start(WITH_CHILD, true);
    const { process } = own;
    if (process === undefined) return;
    expect(remainsOf({ ...own, process: { ...process, boot: 'another' } })).toEqual({ kind: 'out-of-sight' });
    expect(remainsOf({ ...own, process: { ...process, space: 'pid:[1]' } })).toEqual({ kind: 'out-of-sight' });
  });
});

it.skipIf(thisHost() === undefined)('every process is looked at, except the threads of the kernel', () => {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const programs = pids.map(Number).filter((pid) => readStat(pid)?.isOfKernel === false);
  expect(programs).toContain(process.pid);
  const seen = new Set(living(() => true));
  const missed = programs.filter((pid) => !seen.has(pid));
  // Those that have ended since, or wait to be collected.
  expect(missed.filter((pid) => 'RSDT'.includes(readStat(pid)?.state ?? 'gone'))).toEqual([]);
});
