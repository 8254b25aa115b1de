/** What may happen to a machine on trial: commands of every kind, from everybody, and the end of leases. */
import type { Chance } from './chance.ts';
import type { Command, Enlarged, Held, Resource } from './law.ts';
import type { Trial } from './trial.ts';

/** What only one kind of resource knows. */
export interface Moves<State extends Resource> {
  /** What is asked for: a mode, or a weight and perhaps a capacity. */
  wish(chance: Chance): object;
  /** What one who has this hold asks for who wants more. */
  more(hold: Held): object;
  /** The same for one who wants just as much as it has. */
  same(hold: Held): object;
  /** A request as it waits. */
  ticket(command: Command): State['waiting'][number];
  /** Claims besides release and heartbeat, and whatever else there is. */
  readonly claims: readonly string[];
  readonly upgrades: boolean;
  other(chance: Chance): Command;
}

/** Few names, and two of them often: so that one who holds also waits, and waits twice. */
const WHO = ['a', 'a', 'b', 'b', 'c', 'd', 'e'];
const PRIORITIES = [0, 0, 0, 1, 5, -1];
const TIMES = [1000, 20_000, 300_000];

type Move<State extends Resource, Asked extends Command> = (
  trial: Trial<State, Asked>,
  chance: Chance,
  moves: Moves<State>,
  id: string,
) => void;

/** One of them, as chance has it. `id`: of a request that it makes. */
export function play<State extends Resource, Asked extends Command>(
  trial: Trial<State, Asked>,
  chance: Chance,
  moves: Moves<State>,
  id: string,
): void {
  const move = chance.weighted(ALL) as unknown as Move<State, Asked>;
  move(trial, chance, moves, id);
}

/** The newest of its holds, or another one, or none in particular. */
const which = (chance: Chance): number => (chance.often(75) ? 0 : chance.nat(6));

/** Any front of the queue, from nothing to all of it. */
const front = (chance: Chance, { state: { waiting } }: Trial<Resource, Command>): number =>
  chance.often(50) ? Number.POSITIVE_INFINITY : chance.pick([0, 1, chance.nat(waiting.length), waiting.length - 1]);

const acquire: Move<Resource, Command> = (trial, chance, moves, id) => {
  // Without an explicit holder every acquisition is a holder of its own.
  const holder = chance.often(80) ? chance.pick(WHO) : id;
  const command = {
    kind: 'acquire',
    id,
    holder,
    lease: trial.leaseOf(holder),
    priority: chance.pick(PRIORITIES),
    wait: chance.often(70),
    ...moves.wish(chance),
    ...(chance.often(20) && { steal: true as const }),
    ...(chance.often(5) && { force: true as const }),
    ...(chance.often(20) && { maxHoldMs: chance.pick(TIMES) }),
    ...(chance.often(20) && { detached: true as const, ...(chance.often(50) && { ttlMs: chance.pick(TIMES) }) }),
  };
  trial.do(command, front(chance, trial), chance.often(30));
};

/** The same one asks twice, and perhaps somebody else in between. */
const twice: Move<Resource, Command> = (trial, chance, moves, id) => {
  const holder = chance.pick(WHO);
  const others = chance.often(50) ? [chance.pick(WHO)] : [];
  for (const [place, one] of [holder, ...others, holder].entries()) {
    const asked = { kind: 'acquire', id: `${id}/${place}`, holder: one, lease: trial.leaseOf(one), wait: true };
    trial.do({ ...asked, priority: 0, ...moves.wish(chance) } as Command, front(chance, trial));
  }
};

/** Whoever holds it wants more, then more or just as much as it had, and gives up on the first: perhaps too late. */
const moreTwice: Move<Resource, Command> = (trial, chance, moves, id) => {
  const { holds } = trial.state.record;
  const hold = holds[chance.nat(Math.max(0, holds.length - 1))];
  if (hold === undefined) return;
  const { holder } = hold;
  const wishes = [moves.more(hold), chance.often(50) ? moves.more(hold) : moves.same(hold)];
  for (const [place, wish] of wishes.entries()) {
    const asked = { kind: 'acquire', id: `${id}/${place}`, holder, lease: trial.leaseOf(holder), wait: true };
    trial.do({ ...asked, priority: 0, ...wish } as Command, front(chance, trial));
  }
  trial.do({ kind: 'cancel', id: `${id}/0` }, front(chance, trial));
};

/** A guess failed, and with it came the ticket: nobody has looked whether it makes sense. */
const arrive: Move<Resource, Command> = (trial, chance, moves, id) => {
  const command = { kind: 'acquire', id, holder: id, lease: trial.leaseOf(id), priority: chance.pick(PRIORITIES) };
  const asked = { ...command, ...moves.wish(chance) };
  if (!('weight' in asked) || Number(asked.weight) >= 1) trial.arrive(asked, moves.ticket(asked));
};

/** By a hold that it has, or once had: what a client that overslept might send. */
const claim: Move<Resource, Command> = (trial, chance, moves) => {
  const kind = chance.pick(['release', 'release', 'heartbeat', ...moves.claims]);
  const elsewhere = kind === 'release' && chance.often(10);
  const ttl = kind === 'heartbeat' && chance.often(50) && { ttlMs: chance.pick(TIMES) };
  const command = { ...trial.claim(chance.pick(WHO), which(chance)), kind, ...(elsewhere && { elsewhere }), ...ttl };
  trial.do(command, front(chance, trial), chance.often(30));
};

/** By one who holds: the others leave so rarely that queues would never move. */
const leave: Move<Resource, Command> = (trial, chance) => {
  const { holds } = trial.state.record;
  const hold = holds[chance.nat(Math.max(0, holds.length - 1))];
  if (hold === undefined) return;
  trial.do({ kind: 'release', holder: hold.holder, id: hold.id, token: hold.token }, front(chance, trial));
};

const upgrade: Move<Resource, Command> = (trial, chance, moves, id) => {
  if (!moves.upgrades) return;
  const { holds } = trial.state.record;
  const holder = chance.often(70) ? (holds[chance.nat(2)]?.holder ?? 'a') : chance.pick(WHO);
  const asked = { request: id, lease: trial.leaseOf(holder), wait: chance.often(80) };
  const steal = chance.often(20) && { steal: true as const };
  const command = { ...trial.claim(holder, which(chance)), kind: 'upgrade', ...asked, ...steal };
  trial.do(command, front(chance, trial), chance.often(30));
};

const extend: Move<Resource, Command> = (trial, chance, _moves, id) => {
  const holder = chance.pick(WHO);
  const on = chance.often(50) ? { limit: `limit ${id}` } : { lease: trial.leaseOf(holder) };
  trial.do({ ...trial.claim(holder, which(chance)), kind: 'extend', ...on }, front(chance, trial));
};

/** Of anything that was asked: the cancel may come before, after or without the grant. */
const cancel: Move<Resource, Command> = (trial, chance, _moves, id) => {
  const { waiting, record } = trial.state;
  // Those who were granted more than they had: a wish that was given up just as it came true.
  const more = (record.holds as readonly Enlarged[]).flatMap(({ upgradedBy, grown }) => upgradedBy ?? grown?.by ?? []);
  const known = chance.often(50) ? waiting.map((waiter) => waiter.id) : chance.often(50) ? more : [];
  const meant = known[chance.nat(Math.max(0, known.length - 1))] ?? `#${chance.nat(Number(id.slice(1)))}`;
  // The victim of a deadlock may be anywhere in the queue: the whole of it is read.
  if (chance.often(30)) trial.do({ kind: 'refuse', id: meant, cycle: [] } as Command);
  else trial.do({ kind: 'cancel', id: meant }, front(chance, trial), chance.often(30));
};

const rest: Move<Resource, Command> = (trial, chance) => {
  const command = chance.pick<Command>([
    { kind: 'settle' },
    { kind: 'tick' },
    { kind: 'tick' },
    { kind: 'maintain' },
    { kind: 'configure', onStale: 'alert' } as Command,
    { kind: 'configure', onStale: 'reclaim' } as Command,
    { kind: 'configure', onStale: 'reclaim' } as Command,
    { kind: 'configure', maxHoldMs: chance.pick([...TIMES, null]) },
    { kind: 'configure', ttlMs: chance.pick([...TIMES, null]), onStale: 'reclaim' },
    { kind: 'break', holder: 'admin', reason: 'stuck' } as Command,
  ]);
  trial.do(command, front(chance, trial), chance.often(30));
};

const other: Move<Resource, Command> = (trial, chance, moves) =>
  trial.do(moves.other(chance), front(chance, trial), chance.often(30));

const repeat: Move<Resource, Command> = (trial, chance) => trial.repeat(which(chance));

/** Heard of at once, or later. */
const death: Move<Resource, Command> = (trial, chance) => {
  trial.kill(chance.pick(WHO));
  if (chance.often(50)) trial.hear();
};
const deathOfHolder: Move<Resource, Command> = (trial, chance) => {
  const { holds } = trial.state.record;
  const hold = holds[chance.nat(Math.max(0, holds.length - 1))];
  if (hold !== undefined) trial.kill(hold.holder);
  if (chance.often(50)) trial.hear();
};
const disaster: Move<Resource, Command> = (trial, chance) => {
  for (const { holder } of trial.state.record.holds) trial.kill(holder);
  if (chance.often(50)) trial.hear();
};
const limitEnds: Move<Resource, Command> = (trial, chance, _moves, id) => {
  trial.endLease(`limit #${chance.nat(Number(id.slice(1)))}`);
  if (chance.often(50)) trial.hear();
};

const deletion: Move<Resource, Command> = (trial) => trial.deleteRecord();

/** One after another with a high priority comes, and is served as soon as those who hold let go. */
const overtaking: Move<Resource, Command> = (trial, chance, moves, id) => {
  const times = 1 + chance.nat(5);
  for (let time = 0; time < times; time++) {
    const holder = `${id}/${time}`;
    const wish = { kind: 'acquire', id: holder, holder, lease: holder, priority: 9, wait: true };
    trial.do({ ...wish, ...moves.wish(chance) });
    for (const { holder, id, token } of trial.state.record.holds) trial.do({ kind: 'release', holder, id, token });
  }
};

const ALL: readonly (readonly [number, Move<Resource, Command>])[] = [
  [10, acquire],
  [2, arrive],
  [2, twice],
  [1, moreTwice],
  [6, claim],
  [3, leave],
  [3, upgrade],
  [1, extend],
  [3, cancel],
  [3, rest],
  [1, other],
  [1, repeat],
  [2, death],
  [2, deathOfHolder],
  [1, disaster],
  [1, limitEnds],
  [1, deletion],
  [2, overtaking],
  [1, (trial) => trial.hear()],
  [1, (trial) => trial.goOn()],
];
