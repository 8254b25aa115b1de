// docs/shell.md: seeing who holds what, freeing it, and moving it elsewhere.

import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { built } from '../../support/run-processes.ts';
import { recipe, shapeOf } from './page.ts';
import { Workshop } from './workshop.ts';

describe('the recipes for looking', () => {
  let shop: Workshop;
  beforeAll(built);
  beforeEach(async () => {
    shop = new Workshop();
    const acquire = `signalbox lock acquire staging --holder agent:7 --ttl 30m --reason 'trying build 812'`;
    expect(await shop.shell(acquire).ended).toMatchObject({ code: 0 });
  });
  afterEach(() => shop.leave());

  const waiter = async (): Promise<ReturnType<Workshop['shell']>> => {
    const waiting = shop.shell('signalbox run --verbose --lock staging -- echo mine');
    await waiting.prints(/next in line/, 'stderr');
    return waiting;
  };

  it('show who has it, why, and who waits, as on the page', async () => {
    await waiter();
    const { code, stdout } = await shop.try('who').ended;
    expect(code).toBe(0);
    expect(shapeOf(stdout)).toBe(shapeOf(recipe('who').shows[0] ?? ''));
  });

  it('write down who broke a lock and why, and let the next one have it', async () => {
    const waiting = await waiter();
    shop.try('events');
    // It says nothing until something happens, so something has to, until it is heard.
    await expect
      .poll(async () => {
        await shop.shell('signalbox run --lock other -- true').ended;
        return shop.place.read('locks.log');
      })
      .toContain('lock/other');
    expect(await shop.try('break').ended).toMatchObject({ code: 0, stdout: 'lock/staging: ended 1 hold\n' });
    expect(await waiting.ended).toMatchObject({ code: 0, stdout: 'mine\n' });
    await expect.poll(() => shop.place.read('locks.log')).toContain('lock:forced');
    const forced =
      shop.place
        .read('locks.log')
        .split('\n')
        .find((line) => line.includes('lock:forced')) ?? '';
    expect(shapeOf(forced)).toBe(shapeOf(recipe('break').shows[0] ?? ''));
  });

  it('find this machine healthy, or say what is not', async () => {
    expect(await shop.try('doctor').ended).toMatchObject({ code: 0, stderr: '' });
    shop.write('foreign/store.db', 'something else');
    const ill = await shop.try('doctor', { env: { SIGNALBOX_URL: 'file:foreign' } }).ended;
    expect(ill.stdout).toContain('is not a store of signalbox');
    expect(ill.stderr).toBe('not healthy (1)\n');
  });

  it('move holds with their tokens, and tokens go on from there', async () => {
    const held = await shop.shell('signalbox lock acquire staging --holder agent:7').ended;
    expect(await shop.try('backup').ended).toMatchObject({ code: 0 });
    const elsewhere = { env: { SIGNALBOX_URL: 'file:./elsewhere' } };
    const token = held.stdout.trim();
    const release = `signalbox lock release staging --holder agent:7 --token ${token}`;
    expect(await shop.shell(release, elsewhere).ended).toMatchObject({ code: 0 });
    const next = await shop.shell('signalbox lock acquire staging --holder agent:8', elsewhere).ended;
    expect(Number(next.stdout)).toBeGreaterThan(Number(token));
    expect((await shop.try('backup').ended).code).toBe(1);
  });
});
