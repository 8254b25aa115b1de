// Members and leaders, as scripts use them.

import { readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { built, ENTRY, isAlive, Place } from '../support/run-processes.ts';
import { newStoreOf, stores } from '../support/stores.ts';
import { until } from '../support/until.ts';

let place: Place;
beforeAll(built);
beforeEach(() => {
  place = new Place();
});
afterEach(() => place.leave());

const cli = (...args: readonly string[]): ReturnType<Place['start']> => place.start(process.execPath, [ENTRY, ...args]);

describe('signalbox members', () => {
  it('lists a member for as long as its command runs, refuses its id and its asset to others, and prints the changes', async () => {
    const watch = cli('members', 'watch', '-n', '2');
    await watch.prints(/view \d+: 0 members, no coordinator/, 'stdout');
    const inside = `"$NODE" "$ENTRY" members list
      "$NODE" "$ENTRY" who --json
      "$NODE" "$ENTRY" members join agent -- echo never; echo "code $?"
      "$NODE" "$ENTRY" members join other --asset shard/1 -- echo never; echo "code $?"
      echo "member $SIGNALBOX_MEMBER"; exit 7`;
    const options = ['--asset', 'shard/1', '--exclusive', '--metadata', '{"host":"a"}'];
    const { code, stdout, stderr } = await cli('members', 'join', 'agent', ...options, '--', 'sh', '-c', inside).ended;
    expect(code).toBe(7);
    expect(stdout).toMatch(/^MEMBER +FOR +ROLE +ASSETS\nagent +.* +coordinator +shard\/1$/m);
    expect(JSON.parse(/^\{.*$/m.exec(stdout)?.[0] ?? '')).toMatchObject({
      coordinator: 'agent',
      members: [{ id: 'agent', metadata: { host: 'a' }, assets: [{ id: 'shard/1', isExclusive: true }] }],
    });
    expect(stdout).not.toContain('never');
    expect(stdout.match(/code 75/g)).toHaveLength(2);
    expect(stdout).toContain('member agent\n');
    expect(stderr).toContain('a member with this id is alive');
    expect(stderr).toContain('the asset shard/1 belongs to member/agent');
    const watched = await watch.ended;
    expect(watched.code).toBe(0);
    expect(watched.stdout).toMatch(
      /\+agent {2}view \d+: 1 member, coordinator agent\n.* -agent {2}view \d+: 0 members/,
    );
  });

  it('never runs beside the command of a member that was killed: when the lease has ended, that is ended first', async () => {
    const work = `trap 'echo "end $$" >> marks; exit 0' TERM; echo "begin $$" >> marks; echo "pid $$"; while :; do sleep 0.05; done`;
    const exclusive = ['--asset', 'shard/3', '--asset', 'shard/4', '--exclusive', '--ttl', '2s'];
    const killed = cli('members', 'join', 'first', ...exclusive, '--', 'sh', '-c', work);
    const orphan = await killed.pidOf();
    killed.kill('SIGKILL');
    await killed.exited;
    await cli('events', 'tail', 'member:left', '-n', '1', '--since', '1m').ended;
    const script = `echo "begin $$" >> marks; echo "pid $$"`;
    const next = cli('members', 'join', 'second', '--asset', 'shard/3', '--exclusive', '--', 'sh', '-c', script);
    const { code, stderr } = await next.ended;
    expect([code, stderr]).toEqual([0, expect.stringMatching(/asset\/shard\/3: ending process.*left behind by first/)]);
    expect(isAlive(orphan)).toBe(false);
    expect(place.read('marks').trim().split('\n')).toEqual([
      `begin ${orphan}`,
      `end ${orphan}`,
      `begin ${await next.pidOf()}`,
    ]);
    // Nothing is left for the next one to find.
    expect((await cli('members', 'join', 'first', '--asset', 'shard/4', '--', 'true').ended).stderr).toBe('');
  });
});

describe.each(stores)('signalbox lead on $on', ({ kind }) => {
  const newStore = newStoreOf(kind);
  beforeEach(async () => {
    await place.leave();
    place = new Place(newStore);
  });
  // Before anything is told of it, it listens to TERM.
  const WORK = `trap 'echo "end $$" >> marks; exit 0' TERM; echo "begin $$ $SIGNALBOX_TOKEN" >> marks; echo "pid $$"; while :; do sleep 0.05; done`;
  const marks = (): string[] => place.read('marks').trim().split('\n');

  it('runs a command in one place; when the leader is killed it moves, after what it left has been ended', async () => {
    const lead = (...options: readonly string[]): ReturnType<typeof cli> =>
      cli('lead', '--name', 'shop', '--ttl', '4s', '--grace', '5s', ...options, '--', 'sh', '-c', WORK);
    const first = lead();
    const one = await first.pidOf();
    const second = lead('--verbose', '--holder', 'second');
    await second.prints(/next in line/, 'stderr');
    expect((await cli('who').ended).stdout).toMatch(/^shop: led by run:\S+, epoch \d+$/m);
    first.kill('SIGKILL');
    const two = await second.pidOf();
    expect(isAlive(one)).toBe(false);
    const [begun, ended, next] = marks();
    expect([begun, ended, next].map((line) => line?.replace(/ \d+$/, ''))).toEqual([
      `begin ${one}`,
      'end',
      `begin ${two}`,
    ]);
    expect(Number(next?.split(' ')[2])).toBeGreaterThan(Number(begun?.split(' ')[2]));
    // A person takes the lead away: the command is stopped, and this one waits for its next turn, which comes at once.
    const taken = await cli('lock', 'break', 'lead:shop', '--reason', 'test').ended;
    expect(taken.code).toBe(0);
    await second.prints(/waiting for the next turn/, 'stderr');
    await second.prints(new RegExp(`pid (?!${two}\\b)\\d+`), 'stdout');
    // One with the same name does not lead as well: it waits.
    const namesake = lead('--verbose', '--holder', 'second');
    await namesake.prints(/next in line/, 'stderr');
    expect((await cli('who').ended).stdout).toMatch(/^shop: led by second:[0-9a-f]{16}, epoch \d+$/m);
    namesake.kill('SIGTERM');
    await namesake.exited;
    second.kill('SIGTERM');
    await second.exited;
    expect(marks().filter((line) => line.startsWith('begin'))).toHaveLength(3);
    expect(marks().filter((line) => line.startsWith('end'))).toHaveLength(3);
  });

  it('ends with the exit code of a command that ends by itself, and says what is missing', async () => {
    expect((await cli('lead', '--name', 'shared', '--', 'sh', '-c', 'exit 9').ended).code).toBe(9);
    const unnamed = await cli('lead', '--', 'true').ended;
    expect([unnamed.code, unnamed.stderr]).toEqual([64, expect.stringContaining('--name')]);
  });

  it('says once that its commands may overlap, where others can begin on other machines before a command has ended', async () => {
    const told = async (...options: readonly string[]): Promise<string> =>
      (await cli('lead', '--name', 'told', ...options, '--', 'true').ended).stderr;
    expect(await told()).toBe('');
    expect(await told('--ttl', '15s', '--grace', '1400ms')).toBe('');
    const warning = `signalbox: --grace is not less than a tenth of --ttl (1500ms): after a loss, another machine may begin while the command still ends\n`;
    expect(await told('--ttl', '15s', '--grace', '1500ms')).toBe(kind === 'etcd' ? warning : '');
  });

  // It hears TERM, and HUP as many do: as a word to read its configuration again. It ends once it may.
  const SLOW_TO_END = `trap 'trap "" TERM; echo "stopping"; until test -e may-end; do sleep 0.02; done; exit 0' TERM
    trap 'echo "read again"' HUP
    echo "pid $$"; while :; do sleep 0.02; done`;
  const leadSlowly = (): ReturnType<typeof cli> =>
    cli('lead', '--name', 'slow', '--grace', '1h', '--', 'sh', '-c', SLOW_TO_END);
  const takeLead = async (lead: ReturnType<typeof cli>): Promise<void> => {
    expect((await cli('lock', 'break', 'lead:slow', '--reason', 'test').ended).code).toBe(0);
    await lead.prints(/ending the command/, 'stderr');
  };
  /** Whether it takes another turn, or ends. */
  const whatComesAfter = (lead: ReturnType<typeof cli>, first: number): Promise<string> =>
    lead.prints(new RegExp(`^pid (?!${first}$)\\d+$`, 'm')).then(
      () => 'another turn',
      () => 'the end',
    );

  /** Whether the kernel has handed the signal to the process. */
  const isHeard = (pid: number, signal: NodeJS.Signals): boolean => {
    const pending = /^ShdPnd:\t([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? '0';
    return (BigInt(`0x${pending}`) & (1n << BigInt(constants.signals[signal] - 1))) === 0n;
  };

  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
    ['SIGHUP', 129],
  ] as const)('ends by %s that comes while the command of a lost lead is being ended', async (signal, code) => {
    const lead = leadSlowly();
    const first = await lead.pidOf();
    await takeLead(lead);
    await lead.prints(/stopping/);
    lead.kill(signal);
    // If both come at once, a process may hear of the end of its command before the signal.
    await until(() => isHeard(lead.pid, signal));
    writeFileSync(place.path('may-end'), '');
    expect(await whatComesAfter(lead, first)).toBe('the end');
    expect((await lead.ended).code).toBe(code);
  });

  it('ends by a TERM even if the lead is lost while the command obeys it', async () => {
    const lead = leadSlowly();
    const first = await lead.pidOf();
    lead.kill('SIGTERM');
    await lead.prints(/stopping/);
    await takeLead(lead);
    writeFileSync(place.path('may-end'), '');
    expect(await whatComesAfter(lead, first)).toBe('the end');
    expect((await lead.ended).code).toBe(143);
  });

  it('takes another turn after a HUP by which the command did not end', async () => {
    const lead = leadSlowly();
    const first = await lead.pidOf();
    lead.kill('SIGHUP');
    await lead.prints(/read again/);
    await takeLead(lead);
    writeFileSync(place.path('may-end'), '');
    expect(await whatComesAfter(lead, first)).toBe('another turn');
    lead.kill('SIGTERM');
    expect((await lead.ended).code).toBe(0);
  });
});
