/** The subcommands that `lock` and `sem` share. A `ResourceType` says what differs. */
import type { Command } from './command.ts';
import { type LockMode, spoken } from '../core/index.ts';
import { Failure } from '../failure.ts';
import type {
  Breaking,
  ClaimReleaseOutcome,
  DetachedHold,
  DetachedOptions,
  HoldClaim,
  RenewOutcome,
} from '../runtime/holds/terms.ts';
import type { TicketClaim } from '../runtime/holds/tickets.ts';
import type { Survey } from '../runtime/observe/survey/index.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { given, numberArgument, type ResourceArgument } from './arguments.ts';
import { addConfiguring, type Configure } from './configuring.ts';
import { CliExit, EXIT } from './exit-code.ts';
import {
  type AcquireFlags,
  addClaimOptions,
  addHolder,
  type ClaimFlags,
  detachedOptions,
  handOut,
  holderOf,
  isAttached,
  limitOf,
  lossOf,
  nothingBroken,
  patiently,
  person,
  refuseAttached,
  type ReleaseClaim,
  tellKept,
  tellReleased,
  tellRenewed,
} from './holding.ts';
import { printList } from './listing.ts';
import { look } from './read-only.ts';
import { plural, print, printable, printJson, say } from './output.ts';
import { notThroughServer, serverOf } from './remote/url.ts';
import { withBox } from './store.ts';
import { atOnceOrAfterTheDead } from './waiting.ts';
import { screenLayout, tableLines } from './table.ts';
import { collectOrAsk, goneTold, PlaceKept, requestsFor, type Ticketed, ticketsIn } from './ticket.ts';
import { whoLines } from './who-table.ts';

interface Resource {
  readonly name: string;
  readonly resource: string;
  renew(claim: HoldClaim): Promise<RenewOutcome>;
  extend(claim: HoldClaim, ttlMs: number): Promise<RenewOutcome>;
  release(claim: ReleaseClaim): Promise<ClaimReleaseOutcome>;
  withdraw(claim: TicketClaim): Promise<{ readonly kind: 'withdrawn' | 'gone' }>;
  break(by: Breaking): Promise<{ readonly broken: number }>;
}

/** The subcommands of both, except `acquire` and `list`. */
type Shared = 'renew' | 'release' | 'configure' | 'show' | 'break';

interface Surveyed {
  readonly name: string;
  readonly waiting: readonly unknown[];
}

/** Where locks and semaphores differ on the command line. `One`: as a survey describes it. */
export interface ResourceType<One extends Surveyed> {
  readonly kind: 'lock' | 'semaphore';
  /** Reads a name as users type it after this subcommand. */
  argument(text: string, subcommand: string): string;
  of(box: Signalbox, name: string): Resource;
  in(survey: Survey): readonly One[];
  json(one: One, at: number): object;
  /** The cells of its row in `list` between its name and how many wait. */
  summary(one: One): readonly [state: string, holders: string];
  configure: Configure;
  /** Prints what `show` has above its table, and says whether the table follows. */
  headline(one: One): boolean;
  /** The description in the first line, then what its own help shows below the options. */
  readonly help: Readonly<Record<Shared, string>>;
}

export function sharedSubcommands<One extends Surveyed>(
  type: ResourceType<One>,
): Record<Shared | 'list', (command: Command) => Command> {
  const named = (command: Command, name: Shared): Command =>
    command
      .about(type.help[name])
      .argument('<name>', `of the ${type.kind}`, (text: string) => type.argument(text, name));
  return {
    renew: (command) => addRenewing(named(command, 'renew'), type),
    release: (command) => addReleasing(named(command, 'release'), type),
    configure: (command) => addConfiguring(named(command, 'configure'), type.configure),
    show: (command) => addShowing(named(command, 'show'), type),
    list: (command) => addListing(command, type),
    break: (command) => addBreaking(named(command, 'break'), type),
  };
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
  const flags = { ...said, json: command.isJson };
  refuseForeignPid(command, flags);
  const limit = limitOf(flags);
  const isRemote = serverOf(command) !== undefined;
  const work = async (box: Signalbox, signal: AbortSignal): Promise<void> => {
    const one = inBox(box);
    const { mode, weight } = asked;
    const want =
      of.kind === 'lock' ? { lock: of.name, ...given({ mode }) } : { semaphore: of.name, ...given({ weight }) };
    const holder = holderOf(flags);
    const hold = await patiently(box, want, holder, flags, (onWaiting) => {
      const optionsOf = (wait: AcquireFlags['wait']): DetachedOptions => {
        return { ...detachedOptions({ ...flags, ...given({ wait }) }, onWaiting, signal), ...asked };
      };
      const { ticket } = flags;
      const wait = limit.leftMs;
      if (ticket !== undefined)
        return acquireWithTicket(one, optionsOf(wait), { ...flags, ...given({ wait }), isRemote }, signal, onWaiting);
      if (wait !== 0) return one.acquireDetached(optionsOf(wait));
      return atOnceOrAfterTheDead(box, [want], (waitMs) => one.acquireDetached(optionsOf(waitMs)));
    }).catch(printTicket(command));
    tellKept(hold);
    if (flags.pid !== undefined && hold.endsWithPid === undefined && !command.isJson) {
      const then = `if ${flags.pid} ends, the hold lasts until its ${spoken(hold.ttlMs)} are over`;
      say(`${one.resource}: this store cannot see a process end: ${then}`);
    }
    await handOut(command, hold, details(hold), signal, async (claim) => {
      if (!(await isAttached(box, of, claim))) await one.release(claim);
    });
  };
  await withBox(command, work, { limit });
}

/**
 * The server may run on another machine, as another user, or outside of this sandbox: the same pid means another process there.
 */
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
  flags: AcquireFlags & { readonly isRemote: boolean },
  signal: AbortSignal,
  onWaiting: () => void,
): Promise<Hold> {
  const { ticket, wait, isRemote } = flags;
  const [known, ...others] = typeof ticket === 'string' ? ticketsIn(ticket) : [];
  if (others.length > 0) throw new Failure('invalid', `--ticket: ${one.resource} has one ticket, and this is several`);
  const waitMs = wait === false ? 0 : wait;
  const onGone = (): void => {
    if (flags.json !== true) say(goneTold(one.resource));
  };
  const answer = await collectOrAsk(one, { options, isRemote, ticket: known, waitMs, signal, onWaiting, onGone });
  if (answer.kind === 'acquired') return answer.hold;
  throw new PlaceKept(one.resource, waitMs ?? 0, answer, answer.ticket);
}

/** The token's place on stdout is free, and a script has to get the ticket from somewhere. */
function printTicket(command: Command): (error: unknown) => never {
  return (error) => {
    const { ticket } = error instanceof CliExit ? error.details : {};
    if (typeof ticket === 'string' && !command.isJson) print(ticket);
    throw error;
  };
}

function addRenewing(command: Command, { kind, of }: Pick<ResourceType<never>, 'kind' | 'of'>): Command {
  return addClaimOptions(command)
    .limit('--ttl', 'a new time after which the hold is stale without a renewal')
    .inStore(async ({ box }, name: string, flags: ClaimFlags) => {
      const claim = { holder: holderOf(flags), token: flags.token };
      const one = of(box, name);
      if (flags.ttl !== undefined) await refuseAttached(box, { kind, name }, claim);
      const outcome = flags.ttl === undefined ? await one.renew(claim) : await one.extend(claim, flags.ttl);
      if (outcome.kind === 'lost') throw await lossOf(box, { kind, name }, claim);
      tellRenewed(command, one.resource, claim, outcome);
    });
}

interface ReleaseFlags extends Pick<ClaimFlags, 'holder'> {
  readonly token?: number;
  readonly ticket?: string;
}

function addReleasing(command: Command, { kind, of }: Pick<ResourceType<never>, 'kind' | 'of'>): Command {
  addHolder(command)
    .option(
      '--token <number>',
      'the token that acquire printed; needed if the holder has several holds',
      numberArgument,
    )
    .option('--ticket <ticket>', 'give up the place that this ticket keeps in line; its holder need not be named');
  return command.action(async (name: string, flags: ReleaseFlags) => {
    const { ticket, token } = flags;
    const apart = 'a ticket is for a place in line, a token for a hold';
    if (ticket !== undefined && token !== undefined)
      throw new CliExit(EXIT.usage, `--ticket and --token exclude each other: ${apart}`);
    await withBox(command, async (box) => {
      const one = of(box, name);
      if (ticket !== undefined) return giveUpPlace(command, box, one, { kind, name }, ticket, flags.holder);
      const claim = { holder: holderOf(flags), ...given({ token }) };
      await refuseAttached(box, { kind, name }, claim);
      tellReleased(command, one.resource, claim, await one.release(claim));
    });
  });
}

/** The ticket of a `run` may be for several resources: this gives up its place at one of them. `by`: as the user named it. */
async function giveUpPlace(
  command: Command,
  box: Signalbox,
  one: Resource,
  of: ResourceArgument,
  ticket: string,
  by: string | undefined,
): Promise<void> {
  const { resource } = one;
  const ids = ticketsIn(ticket);
  const found = (await requestsFor(box, of)).find(({ id }) => ids.includes(id)) ?? unseen(command, ids, by);
  if (found === undefined || (by !== undefined && by !== found.holder)) throw gone(resource);
  const { id, holder, token } = found;
  if (token !== undefined) await refuseAttached(box, of, { holder, token });
  if ((await one.withdraw({ ticket: id, holder })).kind === 'gone') throw gone(resource);
  const told = printable(`${resource}: ${holder} has given up its place in line`);
  command.answer({ resource, holder, ticket: id, outcome: 'withdrawn' }, told);
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

interface BreakFlags {
  readonly holder?: string;
  readonly reason: string;
  readonly token?: number;
}

function addBreaking(command: Command, { of }: Pick<ResourceType<never>, 'of'>): Command {
  return addHolder(command, 'who breaks it (default: $SIGNALBOX_HOLDER, or user:NAME)')
    .requiredOption('--reason <text>', 'why; the holders get to see it')
    .option('--token <number>', 'the newest token that you saw: a hold that was granted since stays', numberArgument)
    .inStore(async ({ box }, name: string, { holder: by = person(), reason, token }: BreakFlags) => {
      const one = of(box, name);
      const { resource } = one;
      const { broken } = await one.break({ holder: by, reason, ...given({ token }) });
      if (broken === 0) throw new CliExit(EXIT.no, `${resource}: ${nothingBroken(token)}`, { resource, broken });
      command.answer({ resource, broken, by, reason }, `${resource}: ended ${plural(broken, 'hold')}`);
    });
}

function addShowing<One extends Surveyed>(command: Command, type: ResourceType<One>): Command {
  return command.action(async (name: string) => {
    const { found: survey, missing } = await look(command, (box) =>
      box.survey({ resource: { kind: type.kind, name: type.of(box, name).name } }),
    );
    const [one] = type.in(survey);
    if (one === undefined) return;
    if (command.isJson) return printJson(type.json(one, survey.at));
    if (missing !== undefined) print(printable(missing));
    if (!type.headline(one)) return;
    for (const line of whoLines(survey, screenLayout())) print(line);
  });
}

function addListing<One extends Surveyed>(command: Command, type: ResourceType<One>): Command {
  const { kind } = type;
  const example = `signalbox ${command.parent?.name()} list`;
  return command
    .description(`list all ${kind}s in the store`)
    .addHelpText('after', `\nExamples:\n  ${example}\n  ${example} --names`)
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
        lines: (all, layout) => {
          const header = [kind.toUpperCase(), kind === 'lock' ? 'STATE' : 'USED', 'HOLDERS', 'WAITING'];
          const cells = (one: One): readonly string[] => [one.name, ...type.summary(one), String(one.waiting.length)];
          return tableLines(
            header,
            all.map((one) => ({ cells: cells(one) })),
            layout,
          );
        },
      });
    });
}
