/** `signalbox members join ID -- COMMAND`: a member for as long as the command runs. */
import { type Command, InvalidArgumentError } from '../command.ts';
import { type Json, nameProblem } from '../../core/index.ts';
import { groundsOf, type Membership } from '../../runtime/members/membership.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import { given } from '../arguments.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { openBox } from '../store.ts';
import { type Alongside, runAlongside } from '../run/alongside.ts';
import { endLike } from '../run/ended.ts';
import { serverOf } from '../remote/url.ts';
import { jsonArgument } from '../task/arguments.ts';
import { aroundDashes } from '../task/options.ts';

interface Flags {
  readonly asset: readonly string[];
  readonly exclusive?: true;
  readonly sensitive?: true;
  readonly metadata?: Json;
  readonly weight?: number;
  readonly grace: number;
  readonly ttl: number;
}

export function join(command: Command): void {
  command
    .about(`be a member for as long as a command runs

Examples:
  signalbox members join agent-7 -- ./agent.sh
  signalbox members join worker-3 --asset shard/3 --exclusive --metadata '{"host":"a"}' -- ./serve

The command gets SIGNALBOX_MEMBER in its environment. If this process cannot renew its session in time, others see that
the member left, and the command is stopped. If this process is killed and the command is still running when the
lease ends, the next process that joins with this id, or with one of the exclusive assets, stops it first.

Exit codes: the command's own · 128+n ended by signal n · 126 not executable · 127 not found
            64 usage · 69 store unreachable · 75 the id or an asset is another member's · 76 lost while running`)
    .usage('ID [options] -- COMMAND [ARGUMENT…]')
    .argument('<words...>', 'the id of the member, then -- and what to run')
    .list('--asset <id>', 'what the member owns (repeatable)')
    .option('--exclusive', 'no other member may own these assets')
    .option('--metadata <json>', 'what other members get to see of it: JSON, @FILE, or - for stdin', jsonArgument)
    .option('--sensitive', 'the witness enters only a hash of the metadata')
    .option('--weight <number>', 'its share of the keys that are placed on members (default: 1)', weightArgument)
    .duration('--grace', 'time between TERM and KILL if the membership is lost', '5s')
    .limit('--ttl', 'how long the member outlives this process if it vanishes', '15s')
    .action(async (words: string[], flags: Flags) => {
      const { id, argv } = memberAndCommand(words);
      const { grace: graceMs, ttl } = flags;
      const terms = { graceMs, onLost: 'term' as const };
      const ended = await runAlongside(argv, terms, 'now-and-then', async ({ leaving }) => {
        const box = await openBox(command, { sessionTtlMs: ttl, maintains: true }, leaving);
        try {
          return await joined(box, id, flags, serverOf(command) !== undefined);
        } catch (error) {
          await box.close();
          throw error;
        }
      });
      endLike(ended);
    });
}

/** Through a server nothing notes the command: nobody ends it when this process is killed. */
async function joined(box: Signalbox, id: string, flags: Flags, isThroughServer: boolean): Promise<Alongside> {
  const { asset: assets, exclusive, sensitive, metadata, weight } = flags;
  const outcome = await box.members.join(id, metadata, { assets, ...given({ exclusive, sensitive, weight }) });
  if (outcome.kind === 'taken') {
    const message = `member/${id}: a member with this id is alive; choose another id, or see: signalbox members list`;
    throw new CliExit(EXIT.notAcquired, message, { outcome: 'taken', member: id });
  }
  if (outcome.kind === 'asset-taken') {
    const { asset, owner } = outcome;
    const message = `member/${id}: the asset ${asset} belongs to member/${owner}`;
    throw new CliExit(EXIT.notAcquired, message, { outcome: 'asset-taken', asset, owner });
  }
  const { membership } = outcome;
  let leaving: Promise<{ kind: string }> | undefined;
  return {
    what: `member/${id}`,
    environment: { SIGNALBOX_MEMBER: id },
    get isValid() {
      return membership.isValid;
    },
    signal: membership.signal,
    release: () => (leaving ??= left(membership)),
    // The notes of the command are deleted after the member has left, so the store is closed last.
    abandon: () => box.close(),
    ...(!isThroughServer && {
      noted: { box, grounds: groundsOf(membership, exclusive ? assets : []), ttlMs: flags.ttl },
    }),
  };
}

async function left(membership: Membership): Promise<{ kind: string }> {
  const wasMember = membership.isValid;
  await membership.leave();
  return { kind: wasMember ? 'released' : 'already-lost' };
}

function memberAndCommand(words: readonly string[]): { readonly id: string; readonly argv: readonly string[] } {
  const { ids, command } = aroundDashes(words);
  const [id, ...more] = ids;
  const usage = 'signalbox members join ID [options] -- COMMAND';
  if (id === undefined) throw new CliExit(EXIT.usage, `the id of the member is missing; write: ${usage}`);
  if (more.length > 0 || command.length === 0)
    throw new CliExit(EXIT.usage, `the command is missing; write it after --: ${usage}`);
  const problem = nameProblem(id, 'member');
  if (problem !== undefined) throw new CliExit(EXIT.usage, problem);
  return { id, argv: command };
}

function weightArgument(text: string): number {
  const weight = Number(text);
  if (text.trim() !== '' && Number.isFinite(weight) && weight > 0) return weight;
  throw new InvalidArgumentError('expected a number above zero');
}
