import { describe, expect, it } from 'vitest';
import { settle, TestClock } from './test-clock.ts';

describe('a test clock', () => {
  it('stands still until it is advanced', async () => {
    const clock = new TestClock(1000);
    await settle();
    expect([clock.now(), clock.monotonic()]).toEqual([1000, 0]);
    await clock.advance(250);
    expect([clock.now(), clock.monotonic()]).toEqual([1250, 250]);
  });

  it('rings timers in the order in which they are due, each at its own time', async () => {
    const clock = new TestClock(0);
    const rung: string[] = [];
    clock.timer(30, () => rung.push(`c at ${clock.now()}`));
    clock.timer(10, () => rung.push(`a at ${clock.now()}`));
    clock.timer(10, () => rung.push(`b at ${clock.now()}`));
    clock.timer(31, () => rung.push('too late'));
    await clock.advance(30);
    expect(rung).toEqual(['a at 10', 'b at 10', 'c at 30']);
    expect(clock.pendingTimers).toBe(1);
    expect(clock.nextTimerMs).toBe(1);
  });

  it('rings timers that are set while it is advanced', async () => {
    const clock = new TestClock(0);
    const rung: number[] = [];
    const again = (): void => {
      rung.push(clock.now());
      clock.timer(10, again);
    };
    clock.timer(10, again);
    await clock.advance(35);
    expect(rung).toEqual([10, 20, 30]);
    expect(clock.now()).toBe(35);
  });

  it('lets a task that was woken finish what it does before the next timer rings', async () => {
    const clock = new TestClock(0);
    const log: string[] = [];
    const sleep = (ms: number): Promise<void> => new Promise((resolve) => clock.timer(ms, resolve));
    const task = async (name: string, ms: number): Promise<void> => {
      await sleep(ms);
      for (let i = 0; i < 50; i++) await Promise.resolve();
      await new Promise((resolve) => setImmediate(resolve));
      log.push(`${name} at ${clock.now()}`);
      await sleep(5);
      log.push(`${name} again at ${clock.now()}`);
    };
    const tasks = [task('first', 10), task('second', 12)];
    await clock.advance(100);
    await Promise.all(tasks);
    expect(log).toEqual(['first at 10', 'second at 12', 'first again at 15', 'second again at 17']);
  });

  it('hears of timers set by code that has not had its turn yet', async () => {
    const clock = new TestClock(0);
    let rang = false;
    void Promise.resolve().then(() => clock.timer(10, () => (rang = true)));
    await clock.advance(10);
    expect(rang).toBe(true);
  });

  it('does not ring a cancelled timer', async () => {
    const clock = new TestClock();
    const timer = clock.timer(10, () => expect.unreachable());
    clock.timer(5, () => timer.cancel());
    await clock.advance(20);
    timer.cancel();
    expect(clock.pendingTimers).toBe(0);
  });

  it('jumps on the wall without anything else noticing', async () => {
    const clock = new TestClock(5000);
    clock.timer(10, () => expect.unreachable());
    clock.jumpWall(-3000);
    await clock.advance(0);
    expect([clock.now(), clock.monotonic()]).toEqual([2000, 0]);
    clock.jumpWall(60_000);
    await clock.advance(9);
    expect([clock.now(), clock.monotonic()]).toEqual([62_009, 9]);
  });

  it('set to a later time has let that time pass, and rings what came due at the next advance', async () => {
    const clock = new TestClock(1000);
    const rung: number[] = [];
    clock.timer(10, () => rung.push(clock.now()));
    clock.setMillis(3000);
    expect([clock.now(), clock.monotonic(), clock.nextTimerMs]).toEqual([3000, 2000, 0]);
    await clock.advance(0);
    expect(rung).toEqual([3000]);
    clock.setMillis(500);
    expect([clock.now(), clock.monotonic()]).toEqual([500, 2000]);
  });

  it('tells of a timer that sets itself again without end, instead of hanging', async () => {
    const clock = new TestClock();
    let left = 20_000;
    const again = (): void => void (left-- > 0 && clock.timer(0, again));
    again();
    await expect(clock.advance(1)).rejects.toThrow('without end');
  });

  it('refuses to be advanced twice at once, backwards, or by no number', async () => {
    const clock = new TestClock();
    const first = clock.advance(1);
    await expect(clock.advance(1)).rejects.toThrow('already');
    await first;
    await expect(clock.advance(-1)).rejects.toThrow('forward');
    await expect(clock.advance(Number.NaN)).rejects.toThrow('NaN');
    expect(() => new TestClock(Number.POSITIVE_INFINITY)).toThrow('Infinity');
  });
});
