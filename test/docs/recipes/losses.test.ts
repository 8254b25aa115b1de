// docs/shell.md: what happens when a run is killed, stopped, or robbed of its lock.

import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { built, exitCodeFor, isAlive } from '../../support/run-processes.ts';
import { mostAtOnce, Workshop } from './workshop.ts';

/** Begins, and goes on until it is ended. */
const LONG = `echo "begin $1" >> "$LOG"; trap 'echo "end $1" >> "$LOG"; exit 0' TERM
echo "pid $$"; echo "parent $PPID"; while :; do sleep 0.02; done`;

describe('the recipes for losses', () => {
  let shop: Workshop;
  beforeAll(built);
  beforeEach(() => {
    shop = new Workshop();
  });
  afterEach(() => shop.leave());

  const aCommand = (name: string): Record<string, string> => ({ './sync.sh': `./sync.sh ${name}` });
  /** Where the lease must not end by itself, however busy the machine is. */
  const long = { '2s': '1h' };
  /** Where it must end by itself, and not before the test has come to it. */
  const short = { '2s': '5s' };

  it('undo what was begun when the lock is taken away, and say so', async () => {
    shop.keep('careful.sh', 'careful.sh');
    shop.standIn('./undo.sh', 'echo undone >> "$LOG"');
    shop.standIn('./change.sh', 'echo changing; exec sleep 60');
    const robbed = shop.try('lost');
    await robbed.prints(/changing/);
    await shop.shell('signalbox lock break production --reason "a test"').ended;
    const { code, stderr } = await robbed.ended;
    expect(stderr).toMatch(/the hold was lost: it was taken by .* \(a test\)/);
    expect(stderr).toContain('lost the lock; what was begun has been undone');
    expect(code).toBe(0);
    expect(shop.log).toEqual(['undone']);
  });

  it('say nothing of a loss if there was none', async () => {
    shop.keep('careful.sh', 'careful.sh');
    shop.standIn('./change.sh', 'true');
    expect(await shop.try('lost').ended).toMatchObject({ code: 0, stderr: '' });
  });

  it('pass TERM on to the command, and end as it ends', async () => {
    shop.standIn('./sync.sh', 'echo "pid $$"; echo "parent $PPID"; exec sleep 60');
    const started = shop.try('lease', { with: long });
    await started.pidOf();
    process.kill(await started.pidOf('parent'), 'SIGTERM');
    expect(await started.ended).toMatchObject({ code: exitCodeFor('SIGTERM') });
  });

  it('wait for the command of a run that was killed, end it when its time is over, and begin then', async () => {
    shop.standIn('./sync.sh', LONG);
    const killed = shop.try('lease', { with: { ...aCommand('first'), ...short } });
    const orphan = await killed.pidOf();
    process.kill(await killed.pidOf('parent'), 'SIGKILL');
    await killed.exited;
    expect(isAlive(orphan)).toBe(true);
    const next = shop.try('lease', { with: { ...aCommand('second'), ...long } });
    await next.pidOf();
    expect(isAlive(orphan)).toBe(false);
    process.kill(await next.pidOf('parent'), 'SIGTERM');
    expect(await next.ended).toMatchObject({ code: 0 });
    expect(shop.log).toEqual(['begin first', 'end first', 'begin second', 'end second']);
  });

  it('tell a run that was stopped for longer than its lease when it wakes: 76, and never two at once', async () => {
    shop.standIn('./sync.sh', LONG);
    const asleep = shop.try('lease', { with: { ...aCommand('first'), ...short } });
    await asleep.pidOf();
    const run = await asleep.pidOf('parent');
    process.kill(run, 'SIGSTOP');
    const next = shop.try('lease', { with: { ...aCommand('second'), ...long } });
    await next.pidOf();
    process.kill(run, 'SIGCONT');
    const { code, stderr } = await asleep.ended;
    expect(code).toBe(76);
    expect(stderr).toContain('lock/sync: the hold was lost');
    process.kill(await next.pidOf('parent'), 'SIGTERM');
    expect(await next.ended).toMatchObject({ code: 0 });
    expect([mostAtOnce(shop.log), shop.log.length]).toEqual([1, 4]);
  });

  it('go on at once after a run that was killed together with its command', async () => {
    shop.standIn('./sync.sh', LONG);
    const killed = shop.try('lease', { with: { ...aCommand('first'), ...long } });
    const command = await killed.pidOf();
    process.kill(await killed.pidOf('parent'), 'SIGKILL');
    process.kill(command, 'SIGKILL');
    const next = shop.try('lease', { with: { ...aCommand('second'), ...long } });
    await next.pidOf();
    process.kill(await next.pidOf('parent'), 'SIGTERM');
    expect(await next.ended).toMatchObject({ code: 0 });
  });

  it.each([
    ['kill', /ending the command \(KILL\)/],
    ['warn', /the command continues/],
  ])('do as --on-lost %s says, and answer 76', async (what, told) => {
    shop.standIn('./sync.sh', 'trap "" TERM; echo "pid $$"; read -r line; echo "$line" >> "$LOG"');
    const choosing = { '--grace 1s': `--grace 1h --on-lost ${what}`, ...long };
    const robbed = shop.try('lease', { with: choosing, stdin: 'open' });
    await robbed.pidOf();
    await shop.shell('signalbox lock break sync --reason "a test"').ended;
    await robbed.prints(told, 'stderr');
    if (what === 'warn') robbed.write('went on\n');
    expect((await robbed.ended).code).toBe(76);
    expect(shop.log).toEqual(what === 'warn' ? ['went on'] : []);
  });
});
