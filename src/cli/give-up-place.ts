/** `lock release --ticket` and `sem release --ticket`: give up a place in line, or a turn that was not collected. */
import type { Command } from './command.ts';
import type { TicketClaim } from '../runtime/holds/tickets.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { given, type ResourceArgument } from './arguments.ts';
import { refuseAttached } from './attached.ts';
import { CliExit, EXIT } from './exit-code.ts';
import { holderOf } from './holding.ts';
import { print, printable, printJson } from './output.ts';
import { serverOf } from './remote/url.ts';
import { requestsFor, ticketsIn } from './ticket.ts';

interface Queued {
  readonly resource: string;
  withdraw(claim: TicketClaim): Promise<{ readonly kind: 'withdrawn' | 'gone' }>;
}

/** The ticket of a `run` may be for several resources: this gives up its place at one of them. `by`: as the user named it. */
export async function giveUpPlace(
  command: Command,
  box: Signalbox,
  one: Queued,
  of: ResourceArgument,
  ticket: string,
  by: string | undefined,
): Promise<void> {
  const { resource } = one;
  const ids = ticketsIn(ticket);
  const found = (await requestsFor(box, of)).find(({ id }) => ids.includes(id)) ?? unseen(command, ids, by);
  if (found === undefined || (by !== undefined && by !== found.holder)) throw gone(resource);
  const { holder } = found;
  if (found.token !== undefined) await refuseAttached(box, of, { holder, token: found.token });
  if ((await one.withdraw({ ticket: found.id, holder })).kind === 'gone') throw gone(resource);
  if (command.isJson) printJson({ resource, holder, ticket: found.id, outcome: 'withdrawn' });
  else print(printable(`${resource}: ${holder} has given up its place in line`));
}

/** A server does not show the ids of requests that wait, so the user has to name the holder. */
function unseen(
  command: Command,
  [id, ...others]: readonly string[],
  by: string | undefined,
): { readonly id: string; readonly holder: string; readonly token?: number } | undefined {
  if (serverOf(command) === undefined || id === undefined || others.length > 0) return undefined;
  return { id, holder: holderOf(given({ holder: by })) };
}

function gone(resource: string): CliExit {
  const why = 'it has ended, was given up, or is for another resource or holder';
  return new CliExit(EXIT.notPermitted, `${resource}: this ticket keeps no place in line: ${why}`, { outcome: 'gone' });
}
