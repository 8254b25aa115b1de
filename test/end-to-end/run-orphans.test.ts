// `kill -9` of a run cannot be answered by the run itself. So others look after what it leaves.

import { openEmbedded, openEtcdUrl } from 'signalbox/store';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { built, isAlive, Place } from '../support/run-processes.ts';
import { newStoreOf, stores } from '../support/stores.ts';

/** Marks its beginning and its end in a file; it never ends by itself. */
const LONG = `echo begin $$ >> marks; trap 'echo end $$ >> marks; exit 0' TERM; echo "pid $$"; while :; do sleep 0.05; done`;
const SHORT = `echo begin $$ >> marks; echo "pid $$"; echo end $$ >> marks`;

describe.each(stores)('after kill -9 of a run, on $on', ({ kind }) => {
  const newStore = newStoreOf(kind);
  const onFile = kind === 'file' ? it : undefined;
  let place: Place;
  beforeAll(built);
  beforeEach(() => {
    place = new Place(newStore);
  });
  afterEach(() => place.leave());

  const sh = (script: string, ...options: string[]): ReturnType<Place['run']> =>
    place.run([...options, '--', 'sh', '-c', script]);
  const marks = (): string[] => place.read('marks').trim().split('\n');

  // Where processes of several machines meet, only the lease tells that one of them has gone.
  onFile?.('with nothing left behind, the next one goes on without waiting for the lease', async () => {
    const killed = sh('echo "pid $$"; exec sleep 1000', '--lock', 'a', '--ttl', '1h');
    const child = await killed.pidOf();
    const next = sh('echo ran', '--lock', 'a');
    process.kill(child, 'SIGSTOP');
    killed.kill('SIGKILL');
    process.kill(child, 'SIGKILL');
    expect(await next.ended).toMatchObject({ code: 0, stdout: 'ran\n' });
  });

  it('its child is left alone until the lease ends, then ended, and never runs beside the next one', async () => {
    const killed = sh(LONG, '--lock', 'a', '--ttl', '2s');
    const orphan = await killed.pidOf();
    const next = sh(SHORT, '--lock', 'a', '--verbose');
    await next.prints(/next in line/, 'stderr');
    killed.kill('SIGKILL');
    await killed.exited;
    const { code, stderr } = await next.ended;
    const successor = await next.pidOf();
    expect(code).toBe(0);
    expect(stderr).toMatch(/lock\/a: ending process(es)? .*left behind by run:/);
    expect(marks()).toEqual([`begin ${orphan}`, `end ${orphan}`, `begin ${successor}`, `end ${successor}`]);
  });

  it('a child that does not listen to TERM is killed after the grace', async () => {
    const killed = sh(`trap '' TERM; ${LONG.replace(/trap '.*' TERM;/, '')}`, '--lock', 'a', '--ttl', '2s');
    const orphan = await killed.pidOf();
    killed.kill('SIGKILL');
    const next = sh(SHORT, '--lock', 'a', '--grace', '300ms');
    const successor = await next.pidOf();
    expect((await next.ended).code).toBe(0);
    expect(isAlive(orphan)).toBe(false);
    expect(marks()).toEqual([`begin ${orphan}`, `begin ${successor}`, `end ${successor}`]);
  });

  it('what the child had started is ended too, although the child itself has gone', async () => {
    const killed = sh('sleep 1000 & echo "pid $!"; echo "leader $$"; wait', '--lock', 'a', '--ttl', '2s');
    const grandchild = await killed.pidOf();
    const leader = await killed.pidOf('leader');
    killed.kill('SIGKILL');
    process.kill(leader, 'SIGKILL');
    await killed.exited;
    const next = sh(SHORT, '--lock', 'a');
    expect((await next.ended).code).toBe(0);
    expect([isAlive(leader), isAlive(grandchild)]).toEqual([false, false]);
  });

  it('what has a process group of its own, as under timeout, is ended too', async () => {
    const killed = sh(
      `timeout 1000 sh -c 'echo "pid $$"; while :; do sleep 0.05; done' & echo "leader $$"; wait`,
      ...['--lock', 'a', '--ttl', '2s'],
    );
    const inner = await killed.pidOf();
    const leader = await killed.pidOf('leader');
    killed.kill('SIGKILL');
    process.kill(leader, 'SIGKILL');
    await killed.exited;
    expect((await sh(SHORT, '--lock', 'a').ended).code).toBe(0);
    expect([isAlive(leader), isAlive(inner)]).toEqual([false, false]);
  });

  it('somebody who freed the lock in between does not help the orphan to live on', async () => {
    const killed = sh(LONG, '--lock', 'a', '--ttl', '2s');
    const orphan = await killed.pidOf();
    killed.kill('SIGKILL');
    await killed.exited;
    const box = await place.open();
    await box.lock('a').run(() => undefined);
    expect(isAlive(orphan)).toBe(true);
    expect((await sh(SHORT, '--lock', 'a').ended).code).toBe(0);
    expect(isAlive(orphan)).toBe(false);
    expect(marks()[1]).toBe(`end ${orphan}`);
  });

  it('those who share the lock and live are not touched', async () => {
    const reader = sh('echo "pid $$"; read -r line; echo "got $line"', '--lock', 'a:shared');
    await reader.pidOf();
    const killed = sh(LONG, '--lock', 'a:shared', '--ttl', '2s');
    const orphan = await killed.pidOf();
    killed.kill('SIGKILL');
    await killed.exited;
    const box = await place.open();
    // The lease of the dead one ends; the reader's does not.
    const stale = box.lock('a');
    while (!(await stale.isStale())) await new Promise((resolve) => setTimeout(resolve, 20));
    expect((await sh(SHORT, '--lock', 'a:shared').ended).code).toBe(0);
    expect(isAlive(orphan)).toBe(false);
    reader.write('on\n');
    expect((await reader.ended).stdout).toMatch(/got on/);
  });

  it('the next one to get the slot, and only the next one, ends what was left in it', async () => {
    const killed = sh(LONG, '--sem', 'slots=1/2', '--ttl', '2s');
    const orphan = await killed.pidOf();
    const neighbour = sh(LONG, '--sem', 'slots=1/2');
    const alive = await neighbour.pidOf();
    killed.kill('SIGKILL');
    expect((await sh(SHORT, '--sem', 'slots').ended).code).toBe(0);
    expect([isAlive(orphan), isAlive(alive)]).toEqual([false, true]);
    neighbour.kill('SIGTERM');
    expect((await neighbour.ended).code).toBe(0);
  });

  it.each([['--no-wait'], ['--wait', '5s']])(
    'the next one waits for what was left only as long as it may: %s',
    async (...wait) => {
      const killed = sh(`trap '' TERM; ${LONG.replace(/trap '.*' TERM;/, '')}`, '--lock', 'a', '--ttl', '2s');
      const orphan = await killed.pidOf();
      killed.kill('SIGKILL');
      // Whoever does not look for orphans has had it meanwhile: nobody holds it now.
      await (await place.open()).lock('a').run(() => undefined);
      const { code, stderr } = await sh(SHORT, '--lock', 'a', '--grace', '1h', ...wait).ended;
      expect(code).toBe(75);
      expect(stderr).toMatch(/lock\/a: waiting for process(es)? .*, left behind by run:.*; given up/);
      expect(marks()).toEqual([`begin ${orphan}`]);
      // The note is still there for the next one.
      expect((await sh(SHORT, '--lock', 'a', '--grace', '100ms').ended).code).toBe(0);
      expect(isAlive(orphan)).toBe(false);
    },
  );

  it('a child that was not yet let go never begins', async () => {
    // The command's own group is stopped at its gate, because an orphan that is being ended delays it.
    const killed = sh(`trap '' TERM; ${LONG.replace(/trap '.*' TERM;/, '')}`, '--lock', 'a', '--ttl', '2s');
    const orphan = await killed.pidOf();
    killed.kill('SIGKILL');
    const second = sh('echo second >> marks', '--lock', 'a', '--grace', '1h', '--ttl', '2s');
    await second.prints(/ending process/, 'stderr');
    second.kill('SIGKILL');
    await second.exited;
    const third = sh('echo third >> marks', '--lock', 'a', '--grace', '100ms');
    expect((await third.ended).code).toBe(0);
    expect(isAlive(orphan)).toBe(false);
    expect(marks()).toEqual([`begin ${orphan}`, 'third']);
  });

  it('nothing is remembered of children that ended as they should', async () => {
    await sh(SHORT, '--lock', 'a', '--sem', 'slots/2').ended;
    const store = await (kind === 'file' ? openEmbedded(place.url.slice('file:'.length)) : openEtcdUrl(place.url));
    const { results } = await store.transaction({
      compare: [],
      success: [{ do: 'read', key: 'c/', end: 'c0' }],
      failure: [],
    });
    await store.close();
    expect(results[0]).toMatchObject({ count: 0 });
  });
});
