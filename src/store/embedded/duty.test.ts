import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../clock.ts';
import { type ProcessIdentity, thisProcess } from '../../host/index.ts';
import { Duty, type DutyEvents } from './duty.ts';

const BELL = '00000000000000aa';
let directory: string;
let all: Duty[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'signalbox-duty-'));
  all = [];
});

afterEach(() => {
  for (const duty of all) duty.end();
  rmSync(directory, { recursive: true });
});

function sought(events: Partial<DutyEvents> = {}): Duty {
  const ignored = (): void => undefined;
  const duty = new Duty(directory, { share: 'none', heir: undefined }, 'duty-1', systemClock, {
    onAlone: ignored,
    onRelieved: ignored,
    onRung: ignored,
    onDuty: ignored,
    offDuty: ignored,
    onLeft: ignored,
    sharers: () => 1,
    isDeputy: () => true,
    hearFor: () => ignored,
    ...events,
  });
  all.push(duty);
  duty.seek();
  return duty;
}

const onDuty = (): Duty[] => all.filter(({ isOn }) => isOn);
const relieved = (): Duty[] => all.filter(({ isRelieved }) => isRelieved);

async function first(events?: Partial<DutyEvents>): Promise<Duty> {
  const duty = sought(events);
  await expect.poll(() => duty.isOn).toBe(true);
  return duty;
}

describe('the duty of going on rounds', () => {
  it('falls to one of many who seek it at once, and relieves the others', async () => {
    for (let i = 0; i < 12; i++) sought();
    await expect.poll(() => [onDuty().length, relieved().length]).toEqual([1, 11]);
  });

  it('falls to one of many when the process that had it was killed and left its socket behind', async () => {
    writeFileSync(join(directory, 'duty-1'), '');
    for (let i = 0; i < 12; i++) sought();
    await expect.poll(() => [onDuty().length, relieved().length]).toEqual([1, 11]);
  });

  it('passes to another process when its own ends, which tells all that they are alone', async () => {
    const before = await first();
    const onAlone = vi.fn();
    for (let i = 0; i < 5; i++) sought({ onAlone });
    await expect.poll(() => relieved().length).toBe(5);
    before.end();
    await expect.poll(() => [onDuty().length, relieved().length]).toEqual([1, 4]);
    expect(onAlone).toHaveBeenCalledTimes(5);
  });

  it('leaves its deputies knowing which process has ended, and so whom to look up', async () => {
    const own = thisProcess() as ProcessIdentity;
    const before = await first();
    const deputy = sought();
    await expect.poll(() => before.isPresent(own)).toBe(true);
    expect([deputy.hasPredecessor, deputy.isPredecessor(own)]).toEqual([false, false]);
    before.end();
    await expect.poll(() => deputy.isOn).toBe(true);
    expect([deputy.hasPredecessor, deputy.isPredecessor(own)]).toEqual([true, true]);
    expect(deputy.isPredecessor({ ...own, start: '1' })).toBe(false);
  });

  it('wakes only the deputies when its process ends, and the others when their bells are rung', async () => {
    const before = await first();
    const onAlone = vi.fn();
    const others = [sought({ isDeputy: () => false, onAlone }), sought({ isDeputy: () => false, onAlone })];
    const deputy = sought();
    await expect.poll(() => relieved().length).toBe(3);
    before.end();
    await expect.poll(() => deputy.isOn).toBe(true);
    expect(others.map(({ isRelieved }) => isRelieved)).toEqual([true, true]);
    const isThere = (): boolean => deputy.isPresent(thisProcess() as ProcessIdentity);
    if (thisProcess() !== undefined) expect(isThere()).toBe(false);
    // Their bells are rung.
    for (const other of others) other.check();
    await expect.poll(() => others.map(({ isRelieved }) => isRelieved)).toEqual([true, true]);
    if (thisProcess() !== undefined) await expect.poll(isThere).toBe(true);
    // They found the new process on duty, and were never alone.
    expect(onAlone).not.toHaveBeenCalled();
  });

  it('wakes a process that cannot hear its bell when it ends, deputy or not', async () => {
    const before = await first();
    const deaf = sought({ isDeputy: () => false });
    await expect.poll(() => deaf.isRelieved).toBe(true);
    deaf.haveHeard(BELL);
    before.end();
    await expect.poll(() => deaf.isOn).toBe(true);
  });

  it('stays with the process that took it over when the one that was stopped goes on, and ends', async () => {
    const stopped = await first();
    const [next, other] = [sought(), sought()];
    await expect.poll(() => relieved().length).toBe(2);
    next.takeOver();
    expect(next.isOn).toBe(true);
    // It is connected to the one that is stopped until it looks.
    other.check();
    await expect.poll(() => other.isRelieved).toBe(true);
    stopped.check();
    expect(stopped.isOn).toBe(false);
    await expect.poll(() => stopped.isRelieved).toBe(true);
    stopped.end();
    const late = sought();
    await expect.poll(() => late.isRelieved).toBe(true);
    next.check();
    expect([next.isOn, other.isRelieved]).toEqual([true, true]);
  });

  it('is taken over by one of several who find that the process on duty is stopped', async () => {
    await first();
    const others = [sought(), sought(), sought()];
    await expect.poll(() => relieved().length).toBe(3);
    for (const other of others) other.takeOver();
    expect(others.filter(({ isOn }) => isOn)).toHaveLength(1);
  });

  it('leaves nothing behind', async () => {
    await first();
    sought();
    await expect.poll(() => relieved().length).toBe(1);
    for (const duty of all) duty.end();
    expect(readdirSync(directory)).toEqual([]);
  });

  // Only Linux tells which process is which.
  it.skipIf(thisProcess() === undefined)('knows who lives by its connections, and tells when one closes', async () => {
    const ours = thisProcess() as ProcessIdentity;
    const onLeft = vi.fn();
    const duty = await first({ onLeft });
    expect(duty.isPresent(ours)).toBe(false);
    const other = sought();
    await expect.poll(() => duty.isPresent(ours)).toBe(true);
    expect(duty.isPresent({ ...ours, start: '1' })).toBe(false);
    expect(onLeft).not.toHaveBeenCalled();
    other.end();
    await expect.poll(() => onLeft.mock.calls.length).toBe(1);
    expect(duty.isPresent(ours)).toBe(false);
  });

  it('includes listening for the bells of processes that cannot hear them', async () => {
    let tell = (): void => undefined;
    const stop = vi.fn();
    const hearFor = vi.fn((_bell: string, ring: () => void) => {
      tell = ring;
      ring();
      return stop;
    });
    await first({ hearFor });
    const onRung = vi.fn();
    const deaf = sought({ onRung });
    await expect.poll(() => deaf.isRelieved).toBe(true);
    deaf.haveHeard('../no bell');
    deaf.haveHeard(BELL);
    await expect.poll(() => deaf.isHeardFor).toBe(true);
    expect(hearFor.mock.calls.map(([bell]) => bell)).toEqual([BELL]);
    const before = onRung.mock.calls.length;
    tell();
    await expect.poll(() => onRung.mock.calls.length).toBeGreaterThan(before);
    deaf.end();
    await expect.poll(() => stop.mock.calls.length).toBe(1);
  });
});
