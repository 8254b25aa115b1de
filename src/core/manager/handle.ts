/** One command to the manager, from beginning to end. */
import { unreachable } from '../machine.ts';
import { findDeadlocks } from '../deadlock/find.ts';
import { UNUSED } from '../capacity.ts';
import { shown } from '../shown.ts';
import { acquireTogether, type Part } from '../together.ts';
import {
  type AcquireTogether,
  clockProblem,
  commandProblem,
  type ManagerCommand,
  type Renew,
  type ResourceCommand,
} from './command.ts';
import { inFull, togetherInFull } from './in-full.ts';
import { isGone } from './lease.ts';
import {
  type Handled,
  type Manager,
  type ManagerClock,
  type ManagerOutcome,
  type ResourceName,
  resourcesOf,
} from './manager.ts';
import { lookUp } from './table.ts';
import {
  begin,
  type Command,
  end,
  type Outcome,
  renewLease,
  run,
  stateOf,
  take,
  type Terms,
  type Turn,
} from './turn.ts';

/** A command that makes no sense changes nothing and returns an outcome that says so. */
export function handle(manager: Manager, command: ManagerCommand, clock: ManagerClock): Handled {
  const problem = clockProblem(clock) ?? commandProblem(command);
  if (problem !== undefined) return invalid(manager, problem);
  const turn = begin(manager, clock);
  const outcome = carryOut(turn, command);
  return outcome.kind === 'invalid' ? invalid(manager, outcome.problem) : end(turn, outcome);
}

export function invalid(manager: Manager, problem: string): Handled {
  return { manager, outcome: { kind: 'invalid', problem }, events: [], answers: [], losses: [] };
}

function carryOut(turn: Turn, command: ManagerCommand): ManagerOutcome {
  if (command.kind === 'renew') return renew(turn, command);
  if (command.kind === 'acquire-together') return together(turn, command);
  return single(turn, command);
}

function single(turn: Turn, asked: ResourceCommand): ManagerOutcome {
  const full = inFull(turn, asked);
  if ('problem' in full) return { kind: 'invalid', problem: full.problem };
  const { command, terms } = full;
  const { resource } = asked;
  const { locks, semaphores } = turn.manager;
  const outcome = carryOutOne(turn, resource, command, terms);
  if (asked.kind === 'heartbeat') heard(turn, outcome);
  if (turn.manager.locks !== locks || turn.manager.semaphores !== semaphores) refuseDeadlocked(turn);
  const id = command.kind === 'acquire' ? command.id : command.kind === 'upgrade' ? command.request : undefined;
  return answeredMeanwhile(turn, resource, id) ?? outcome;
}

function carryOutOne(turn: Turn, resource: ResourceName, command: Command, terms: Terms): Outcome {
  const outcome = run(turn, resource, command, terms);
  if (command.kind === 'acquire') heard(turn, outcome);
  return named(resource, outcome);
}

/** Names the semaphore that was never used. */
function named(resource: ResourceName, outcome: Outcome): Outcome {
  if (outcome.kind !== 'impossible' || outcome.why !== UNUSED) return outcome;
  return { ...outcome, why: UNUSED.replace('this semaphore', resource) };
}

function together(turn: Turn, asked: AcquireTogether): ManagerOutcome {
  const full = togetherInFull(turn, asked);
  if ('problem' in full) return { kind: 'invalid', problem: full.problem };
  const parts = asked.parts.map(({ resource }, place) => {
    const command = full.command[place] as Part['command'];
    return { name: resource, state: stateOf(turn, resource), command } as Part & {
      readonly name: ResourceName;
    };
  });
  const answer = acquireTogether(parts, turn.at);
  switch (answer.kind) {
    case 'invalid':
      return answer;
    case 'refused': {
      const refusals = answer.refusals.map(({ name, outcome, events }) => {
        const resource = name as ResourceName;
        turn.events.push(...events.map((event) => ({ ...event, resource })));
        return { resource, outcome: named(resource, outcome) };
      });
      return { kind: 'refused-together', refusals };
    }
    case 'granted': {
      const grants = answer.steps.map(({ name, step }) => {
        const resource = name as ResourceName;
        const outcome = take(turn, resource, step, full.terms);
        heard(turn, outcome);
        return { resource, outcome };
      });
      refuseDeadlocked(turn);
      return { kind: 'acquired-together', grants };
    }
    default:
      return unreachable(answer);
  }
}

function renew(turn: Turn, asked: Renew): ManagerOutcome {
  const { leases } = turn.manager;
  const own = 'lease' in asked ? [asked.lease] : leasesOf(turn.manager, asked.holder);
  const [alive, lost]: [string[], string[]] = [[], []];
  for (const lease of own) {
    const known = lookUp(leases, lease);
    if (known?.fixed === true)
      return { kind: 'invalid', problem: `lease is ${shown(lease)}, which only limits a hold` };
    if (known === undefined || isGone(known, turn.at.now)) lost.push(lease);
    else alive.push(lease);
  }
  for (const lease of alive) renewLease(turn, lease);
  return alive.length === 0 ? { kind: 'lost' } : { kind: 'renewed', leases: alive, lost };
}

/** What keeps this holder's holds and requests alive. */
function leasesOf(manager: Manager, holder: string): ReadonlySet<string> {
  const own = resourcesOf(manager).flatMap(({ state: { record, waiting } }) => [...record.holds, ...waiting]);
  return new Set(own.filter((one) => one.holder === holder).map(({ lease }) => lease));
}

/** A holder that asks again for what it has, or repeats its request, is alive. */
function heard(turn: Turn, outcome: Outcome): void {
  if (outcome.kind === 'refreshed' || outcome.kind === 'extended' || outcome.kind === 'already-held') {
    renewLease(turn, outcome.hold.lease);
  }
}

/** A request, or a grant to a holder that waits elsewhere, may have closed a cycle. */
export function refuseDeadlocked(turn: Turn): void {
  const { arrivals } = turn.manager;
  const deadlocks = findDeadlocks(resourcesOf(turn.manager), turn.at, (id) => lookUp(arrivals, id) ?? 0);
  for (const { cycle, victim } of deadlocks) {
    run(turn, victim.resource as ResourceName, { kind: 'refuse', id: victim.request.id, cycle });
  }
}

/** The answer to the request that is being handled is its outcome. */
function answeredMeanwhile(turn: Turn, resource: ResourceName, id: string | undefined): Outcome | undefined {
  const place = turn.answers.findIndex((answer) => answer.id === id && answer.resource === resource);
  return turn.answers.splice(place, place < 0 ? 0 : 1)[0]?.outcome;
}
