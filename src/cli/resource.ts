/** The subcommands that `lock` and `sem` have in common. A `ResourceType` says what differs; the help is the caller's. */
import type { Command } from 'commander';
import { type LockMode, spoken } from '../core/index.ts';
import { Failure } from '../failure.ts';
import type {
  ClaimReleaseOutcome,
  DetachedHold,
  DetachedOptions,
  HoldClaim,
  RenewOutcome,
} from '../runtime/holds/terms.ts';
import type { Survey } from '../runtime/observe/survey/index.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { given, limitArgument, numberArgument, type ResourceArgument } from './arguments.ts';
import { isAttached, refuseAttached } from './attached.ts';
import { CliExit } from './exit-code.ts';
import {
  type AcquireFlags,
  addClaimOptions,
  addHolder,
  type ClaimFlags,
  detachedOptions,
  handOut,
  holderOf,
  limitOf,
  patiently,
  tellKept,
  type ReleaseClaim,
  tellReleased,
  tellRenewed,
} from './holding.ts';
import { listLines, type Summary } from './list-table.ts';
import { printList } from './listing.ts';
import { look } from './looking.ts';
import { complain, paintFor, print, printable, printJson, screen } from './output.ts';
import { notThroughServer, serverOf } from './remote/url.ts';
import { isJson, withBox } from './store.ts';
import { atOnceOrAfterTheDead } from './waiting.ts';
import { layoutFor } from './table.ts';
import { collectOrAsk, goneTold, PlaceKept, type Ticketed, ticketsIn } from './ticket.ts';
import { whoLines } from './who-table.ts';

interface Resource {
  readonly name: string;
  readonly resource: string;
  renew(claim: HoldClaim): Promise<RenewOutcome>;
  extend(claim: HoldClaim, ttlMs: number): Promise<RenewOutcome>;
  release(claim: ReleaseClaim): Promise<ClaimReleaseOutcome>;
}

interface Kind {
  readonly kind: 'lock' | 'semaphore';
  of(box: Signalbox, name: string): Resource;
}

/** Where locks and semaphores differ on the command line. `One`: as a survey describes it. */
export interface ResourceType<One extends { readonly name: string }> extends Kind {
  in(survey: Survey): readonly One[];
  json(one: One, at: number): object;
  summary(one: One): Summary;
}

/** Acquires a detached hold and prints its token. */
export async function acquireByHand<Hold extends DetachedHold>(
  command: Command,
  of: ResourceArgument,
  said: AcquireFlags,
  inBox: (box: Signalbox) => Acquirable<Hold>,
  asked: Partial<DetachedOptions> & { readonly mode?: LockMode; readonly weight?: number },
  details: (hold: Hold) => object,
): Promise<void> {
  const flags = { ...said, json: isJson(command) };
  refuseForeignPid(command, flags);
  const limit = limitOf(flags);
  const work = async (box: Signalbox, signal: AbortSignal): Promise<void> => {
    const one = inBox(box);
    const want = of.kind === 'lock' ? { lock: of.name } : { semaphore: of.name };
    const holder = holderOf(flags);
    const hold = await patiently(box, want, holder, flags, (onWaiting) => {
      const optionsOf = (wait: AcquireFlags['wait']): DetachedOptions => {
        return { ...detachedOptions({ ...flags, ...given({ wait }) }, onWaiting, signal), ...asked };
      };
      const { ticket } = flags;
      const wait = limit.leftMs;
      if (ticket !== undefined)
        return acquireWithTicket(one, optionsOf(wait), { ...flags, ...given({ wait }) }, signal, onWaiting);
      if (wait !== 0) return one.acquireDetached(optionsOf(wait));
      return atOnceOrAfterTheDead(box, [want], (waitMs) => one.acquireDetached(optionsOf(waitMs)));
    }).catch(printTicket(command));
    tellKept(hold);
    if (flags.pid !== undefined && hold.endsWithPid === undefined && !isJson(command))
      tellUnseen(one.resource, flags.pid, hold.ttlMs);
    await handOut(command, hold, details(hold), signal, async (claim) => {
      if (!(await isAttached(box, of, claim))) await one.release(claim);
    });
  };
  await withBox(command, work, { limit });
}

/** The server may run on another machine, as another user, or outside of this sandbox: its processes are others. */
function refuseForeignPid(command: Command, { pid }: AcquireFlags): void {
  const server = serverOf(command);
  if (pid === undefined || server === undefined) return;
  const why = 'the server cannot see the processes of this machine';
  throw notThroughServer('--pid', server, why, 'use a short --ttl and renew the hold');
}

interface Acquirable<Hold extends DetachedHold> extends Resource, Ticketed<Hold> {
  acquireDetached(options: DetachedOptions): Promise<Hold>;
}

async function acquireWithTicket<Hold extends DetachedHold>(
  one: Acquirable<Hold>,
  options: DetachedOptions,
  flags: AcquireFlags,
  signal: AbortSignal,
  onWaiting: () => void,
): Promise<Hold> {
  const { ticket, wait } = flags;
  const [known, ...others] = typeof ticket === 'string' ? ticketsIn(ticket) : [];
  if (others.length > 0) throw new Failure('invalid', `--ticket: ${one.resource} has one ticket, and this is several`);
  const waitMs = wait === false ? 0 : wait;
  const onGone = (): void => {
    if (flags.json !== true) complain(printable(`signalbox: ${goneTold(one.resource)}`));
  };
  const answer = await collectOrAsk(one, { options, ticket: known, waitMs, signal, onWaiting, onGone });
  if (answer.kind === 'acquired') return answer.hold;
  throw new PlaceKept(one.resource, waitMs ?? 0, answer, answer.ticket);
}

/** The token's place on stdout is free, and a script has to get the ticket from somewhere. */
function printTicket(command: Command): (error: unknown) => never {
  return (error) => {
    const { ticket } = error instanceof CliExit ? error.details : {};
    if (typeof ticket === 'string' && !isJson(command)) print(ticket);
    throw error;
  };
}

function tellUnseen(resource: string, pid: number, ttlMs: number): void {
  const why = 'this store cannot see a process end';
  complain(
    printable(`signalbox: ${resource}: ${why}: if ${pid} ends, the hold lasts until its ${spoken(ttlMs)} are over`),
  );
}

/** Adds the options and the action of `renew`. */
export function addRenewing(command: Command, { kind, of }: Kind, ttlHelp: string): Command {
  return addClaimOptions(command)
    .option('--ttl <duration>', ttlHelp, limitArgument)
    .action(async (name: string, flags: ClaimFlags) => {
      await withBox(command, async (box) => {
        const claim = { holder: holderOf(flags), token: flags.token };
        const one = of(box, name);
        if (flags.ttl !== undefined) await refuseAttached(box, { kind, name }, claim);
        const outcome = flags.ttl === undefined ? await one.renew(claim) : await one.extend(claim, flags.ttl);
        tellRenewed(command, one.resource, claim, outcome);
      });
    });
}

/** Adds the options and the action of `release`. */
export function addReleasing(command: Command, { kind, of }: Kind): Command {
  addHolder(command).option(
    '--token <number>',
    'the token that acquire printed; needed if the holder has several holds',
    numberArgument,
  );
  return command.action(async (name: string, flags: Pick<ClaimFlags, 'holder'> & { readonly token?: number }) => {
    await withBox(command, async (box) => {
      const claim = { holder: holderOf(flags), ...given({ token: flags.token }) };
      const one = of(box, name);
      await refuseAttached(box, { kind, name }, claim);
      tellReleased(command, one.resource, claim, await one.release(claim));
    });
  });
}

/** Adds the action of `show`. `headline` prints what stands above the table, and says whether the table follows. */
export function addShowing<One extends { readonly name: string }>(
  command: Command,
  type: ResourceType<One>,
  headline: (one: One) => boolean,
): Command {
  return command.action(async (name: string) => {
    const { found: survey, missing } = await look(command, (box) =>
      box.survey({ resource: { kind: type.kind, name: type.of(box, name).name } }),
    );
    const [one] = type.in(survey);
    if (one === undefined) return;
    if (isJson(command)) return printJson(type.json(one, survey.at));
    if (missing !== undefined) print(printable(missing));
    if (!headline(one)) return;
    for (const line of whoLines(survey, layoutFor(screen(), paintFor(screen())))) print(line);
  });
}

/** Adds the options and the action of `list`. */
export function addListing<One extends { readonly name: string }>(command: Command, type: ResourceType<One>): Command {
  const { kind } = type;
  return command
    .description(`list all ${kind}s in the store`)
    .option('--names', 'print only the names, one per line')
    .action(async ({ names }: { names?: true }) => {
      // A key that may belong to either kind is reported by both.
      const other = kind === 'lock' ? '/semaphore/' : '/lock/';
      await printList(command, {
        names,
        look: async (box, onMalformed) => {
          const survey = await box.survey({ leases: false });
          survey.malformed.filter(({ key }) => !key.startsWith(other, 1)).forEach(onMalformed);
          return survey;
        },
        all: type.in,
        name: ({ name }) => name,
        json: (found, malformed) => ({
          [`${kind}s`]: type.in(found).map((one) => type.json(one, found.at)),
          malformed,
        }),
        nothing: `No ${kind} has been used.`,
        lines: (all, layout) => listLines(kind, all.map(type.summary), layout),
      });
    });
}
