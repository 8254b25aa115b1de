/** Builds the mailbox letters of a write, one for each process that it concerns: answers, replies, losses, reports. */
import type { WriterIdentity } from './commit.ts';
import { type Decision, mailed } from './decision.ts';
import {
  type Head,
  type Letter,
  processOf,
  type Report,
  shortened,
  type ShortRequest,
  ticketClass,
} from '../layout.ts';
import type { Coordinated } from './machines.ts';
import { marksAfter } from './marks.ts';
import type { AnyOutcome, Ticket } from './pending-command.ts';
import type { Snapshot } from './snapshot.ts';

/** Tickets in a report: enough for as many handoffs without a read of the queue. */
const REPORTED = 32;
/** Longer reports are left out: every letter of the write has the report, and stores limit the size of a transaction. */
const LONGEST_REPORT = 8 * 1024;

export function lettersOf(
  resource: string,
  decision: Decision<Coordinated>,
  sender: WriterIdentity,
  reportOnce: () => Report | undefined,
): ReadonlyMap<string, Letter> {
  const letters = new Map<string, Letter>();
  let reports: Pick<Letter, 'reports'> | undefined;
  const reported = (): Pick<Letter, 'reports'> => {
    if (reports === undefined) {
      const report = reportOnce();
      reports = report === undefined ? {} : { reports: [report] };
    }
    return reports;
  };
  const letterTo = (process: string): Letter => letters.get(process) ?? { answers: [], losses: [] };
  // This process gets its own answers and losses directly.
  const isOther = (process: string): boolean => process !== sender.id;
  for (const answer of decision.answers) {
    const process = processOf(answer.id);
    if (!isOther(process)) continue;
    const letter = letterTo(process);
    const answered = { resource, id: answer.id, outcome: mailed(answer.outcome as AnyOutcome) };
    letters.set(process, { ...letter, answers: [...letter.answers, answered], ...reported() });
  }
  for (const { process, ...reply } of decision.replies) {
    const letter = letterTo(process);
    letters.set(process, { ...letter, done: [...(letter.done ?? []), reply], ...reported() });
  }
  for (const { hold, why, by, reason } of decision.losses) {
    // By its lease, not its id: a process may hold what another one asked for.
    const process = processOf(hold.lease);
    if (!isOther(process)) continue;
    const loss = {
      id: hold.id,
      token: hold.token,
      why,
      ...(by !== undefined && { by }),
      ...(reason !== undefined && { reason }),
    };
    const letter = letterTo(process);
    letters.set(process, { ...letter, losses: [...letter.losses, loss] });
  }
  return letters;
}

/** Reports the state that the write makes, without `arriving`: tickets of other processes may have arrived before them. */
export function reportOf(
  resource: string,
  snapshot: Snapshot<Coordinated>,
  decision: Decision<Coordinated>,
  arriving: readonly Ticket[],
  by: string,
  head: Head | undefined,
): Report | undefined {
  const { record, waiting } = decision.state;
  const known = waiting.length - arriving.length;
  const front: [ShortRequest, number][] = [];
  // A ticket of a higher priority may be behind the front, so a part of such a queue would be misleading.
  if (known <= REPORTED || isOfOneClass(waiting)) {
    for (let place = 0; place < known && place < REPORTED; place++) {
      const request = waiting[place] as Ticket;
      front.push([shortened(request), snapshot.arrivals.get(request.id) ?? 0]);
    }
  }
  const more = front.length < known || snapshot.othersWait;
  const { queueRevision } = snapshot;
  const marks = marksAfter(snapshot.marks, decision.marks);
  const optional = { ...(more && { more }), ...(marks.length > 0 && { marks }), ...(head && { head }) };
  const report: Report = { resource, record, by, waiting: front, ...optional, queueRevision };
  return JSON.stringify(report).length > LONGEST_REPORT ? undefined : report;
}

function isOfOneClass(waiting: readonly Ticket[]): boolean {
  const first = waiting[0] as Ticket;
  return waiting.every((request) => ticketClass(request) === ticketClass(first));
}
