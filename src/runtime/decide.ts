/** Runs a batch of commands on what is known, one after another: the draft that comes of it, and what each is told. */
import { type Moment, NONE, type Request } from '../core/index.ts';
import { Draft } from './draft.ts';
import { ErrandPending } from './errands.ts';
import type { Coordinated, Machine } from './machines.ts';
import type { AnyCommand, AnyOutcome, Pending } from './pending.ts';

/** `session`: of the process that decides. `at.most`: so many of those who wait are served at most. */
export function decide<State extends Coordinated, Command extends AnyCommand, Outcome extends AnyOutcome>(
  machine: Machine<State, Command, Outcome>,
  state: State,
  batch: readonly Pending<Command, Outcome>[],
  at: Moment,
  session: string,
): Draft<State> {
  const { most = Number.POSITIVE_INFINITY } = at;
  const draft = new Draft(state, at);
  // Plain loops here and below: every acquire and every release passes them.
  for (let i = 0; i < batch.length; i++) {
    const pending = batch[i] as Pending<Command, Outcome>;
    const { command } = pending;
    const before = draft.state;
    const left = most - draft.touched;
    if (left <= 0) {
      // This write is full: the rest of the batch is decided again after it.
      pending.outcome = { kind: 'unfinished', then: command } as unknown as Outcome;
      pending.effective = false;
      continue;
    }
    const step = machine.transition(before, command, draft.touched === 0 ? at : { ...at, most: left });
    const { outcome } = step;
    pending.outcome = outcome;
    pending.effective = step.state !== before;
    pending.events = pending.effective ? NONE : step.events;
    const { ticket } = command;
    if (ticket !== undefined) {
      // It may have been granted since: then the record has changed, and the grant has to be given back.
      draft.restsOnRecord = true;
      if (!draft.withdrawn.some(({ id }) => id === ticket.id)) draft.withdrawn = [...draft.withdrawn, ticket];
    }
    if (!pending.effective) continue;
    draft.take(step);
    if (outcome.kind === 'unfinished') continue;
    if (pending.mark !== undefined) draft.marks = [...draft.marks, pending.mark];
    if (pending instanceof ErrandPending) draft.onBehalfOf(pending.errand, pending.place, outcome);
    if (outcome.kind === 'queued') {
      // Somebody who may hold it already must not queue behind itself: that decision rests on the record.
      const request = command as unknown as Request;
      if (pending.uncertain || command.kind !== 'acquire' || request.holder !== request.id) draft.restsOnRecord = true;
    } else if ((command.kind === 'acquire' || command.kind === 'upgrade') && !isReentry(outcome)) {
      const request = command as unknown as Request;
      draft.newcomers = draft.newcomers.length === 0 ? [request] : [...draft.newcomers, request];
      if (request.lease !== session) draft.usesOwnLease = true;
    }
  }
  if (draft.answers.length > 0) draft.countNewcomers(batch);
  return draft;
}

/** Its holder has it already, and passes nobody by entering again. */
function isReentry({ kind }: AnyOutcome): boolean {
  return kind === 'extended' || kind === 'already-held';
}
