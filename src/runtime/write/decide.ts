/** Decides a batch of commands on a state, one after another, and gives each command its outcome. */
import { type Answer, type Moment, NONE, type Request } from '../../core/index.ts';
import { requestIn } from './batch.ts';
import { Decision } from './decision.ts';
import { DelegatedCommand } from './delegation-mail.ts';
import type { Coordinated, Machine } from './machines.ts';
import type { AnyCommand, AnyOutcome, PendingCommand } from './pending-command.ts';

/** `session`: of the process that decides. `at.most`: how many waiters the decision serves at most. */
export function decide<State extends Coordinated, Command extends AnyCommand, Outcome extends AnyOutcome>(
  machine: Machine<State, Command, Outcome>,
  state: State,
  batch: readonly PendingCommand<Command, Outcome>[],
  at: Moment,
  session: string,
  isWitnessed: boolean,
): Decision<State> {
  const { most = Number.POSITIVE_INFINITY } = at;
  const decision = new Decision(state, at, isWitnessed);
  // Plain loops here and below, for speed: every acquire and every release passes them.
  for (let i = 0; i < batch.length; i++) {
    const pending = batch[i] as PendingCommand<Command, Outcome>;
    const { command } = pending;
    const before = decision.state;
    const answer = decision.answers.length === 0 ? undefined : answerTo(command, decision);
    if (answer !== undefined) {
      // It was sent again, and served from the queue in this very write: decided once more, it would queue behind itself.
      pending.outcome = answer.outcome as Outcome;
      pending.effective = false;
      continue;
    }
    const left = most - decision.touched;
    if (left <= 0) {
      // This write is full: the rest of the batch is decided again after it.
      pending.outcome = { kind: 'unfinished', then: command } as unknown as Outcome;
      pending.effective = false;
      continue;
    }
    const step = machine.transition(before, command, decision.touched === 0 ? at : { ...at, most: left });
    const { outcome } = step;
    pending.outcome = outcome;
    pending.effective = step.state !== before;
    pending.events = pending.effective ? NONE : step.events;
    const { ticket } = command;
    if (ticket !== undefined) {
      // The request may have been granted since: then the record has changed, and the grant has to be given back.
      decision.restsOnRecord = true;
      if (!decision.withdrawn.some(({ id }) => id === ticket.id)) decision.withdrawn = [...decision.withdrawn, ticket];
    }
    if (!pending.effective) continue;
    decision.take(step, command);
    if (outcome.kind === 'unfinished') continue;
    if (pending.mark !== undefined) decision.marks = [...decision.marks, pending.mark];
    if (pending instanceof DelegatedCommand) decision.onBehalfOf(pending.delegated, pending.place, outcome);
    if (outcome.kind === 'queued') {
      // A holder that may hold the resource already must not queue behind itself: this decision rests on the record.
      const request = command as unknown as Request;
      if (pending.uncertain || command.kind !== 'acquire' || request.holder !== request.id)
        decision.restsOnRecord = true;
    } else if ((command.kind === 'acquire' || command.kind === 'upgrade') && !isReentry(outcome)) {
      const request = command as unknown as Request;
      decision.newcomers = decision.newcomers.length === 0 ? [request] : [...decision.newcomers, request];
      if (request.lease !== session) decision.usesOwnLease = true;
    }
  }
  if (decision.answers.length > 0) decision.countNewcomers(batch);
  return decision;
}

function answerTo(command: AnyCommand, { answers }: Pick<Decision<never>, 'answers'>): Answer<unknown> | undefined {
  const request = requestIn(command);
  return request === undefined ? undefined : answers.find(({ id }) => id === request);
}

/** A re-entry passes no waiter: its holder has the resource already. */
function isReentry({ kind }: AnyOutcome): boolean {
  return kind === 'extended' || kind === 'already-held';
}
