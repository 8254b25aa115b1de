/** `signalbox task claim`: a detached claim, which lasts for its time and is renewed by hand. */
import type { Command } from 'commander';
import { NotAcquired, type Refusal } from '../../runtime/refusal.ts';
import type { DetachedClaim } from '../../runtime/tasks/dispatch.ts';
import { durationArgument, given } from '../arguments.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { addHolder, holderOf } from '../holding.ts';
import { handOver, jsonText, named, tell } from '../output.ts';
import { isJson, withBox } from '../store.ts';
import { all, none, taskId } from './arguments.ts';

interface Flags {
  readonly holder?: string;
  readonly ttl?: number;
  readonly capability: readonly string[];
  readonly wait?: number;
}

export function addTaskClaim(command: Command): void {
  addHolder(command.description('claim a task, or the next one, and print its token'))
    .argument('[id]', 'of the task (default: the best pending task that this worker can do)', taskId)
    .option(
      '--ttl <duration>',
      'the task is pending again after this time without a renewal (default: 60s)',
      durationArgument,
    )
    .option('--capability <name>', 'what this worker can do (repeatable)', all, none)
    .option('--wait <duration>', 'wait at most this long for it (default: do not wait)', durationArgument)
    .addHelpText(
      'after',
      `
Examples:
  TOKEN=$(signalbox task claim build-7 --holder agent:7 --ttl 5m)
  read -r TOKEN ID < <(signalbox task claim --holder agent:7 --capability gpu --wait 1h)
  signalbox task claim --holder agent:7 --json | jq .data

Prints the token; without an id, the token and the id. With --json also the data.
Exit codes: 75 another worker has it, or it is blocked; 1 there is none, or it is done.`,
    )
    .action(async (id: string | undefined, flags: Flags) => {
      await withBox(command, async (box, signal) => {
        const { ttl, capability, wait = 0 } = flags;
        const options = {
          holder: holderOf(flags),
          capabilities: capability,
          waitMs: wait,
          signal,
          ...given({ ttlMs: ttl }),
        };
        if (wait > 0) tell(`signalbox: waiting for ${id === undefined ? 'a task' : `task/${id}`}`);
        const claim = await claimed(
          id === undefined ? box.tasks.claimNextDetached(options) : box.tasks.claimDetached(id, options),
        );
        try {
          signal.throwIfAborted();
          handOver(shown(command, claim, id === undefined));
        } catch (error) {
          // No one knows of this claim, so it is released.
          await box.tasks.release(claim.id, { token: claim.token });
          if (error instanceof CliExit) throw error;
          throw new CliExit(
            EXIT.notAcquired,
            `task/${claim.id}: the token could not be printed, so the claim was released`,
          );
        }
      });
    });
}

function shown(
  command: Command,
  { id, holder, token, ttlMs, renewWithinMs, attempt, data }: DetachedClaim,
  isNext: boolean,
): string {
  if (isJson(command)) return jsonText({ task: id, holder, token, ttlMs, renewWithinMs, attempt, data });
  return isNext ? `${token} ${named(id)}` : String(token);
}

/** Whether the answer is negative (nothing to claim), rather than a refusal (another worker has it). */
export async function claimed<T>(claiming: Promise<T>): Promise<T> {
  try {
    return await claiming;
  } catch (error) {
    if (error instanceof NotAcquired && isNothing(error.resource, error.refusal)) {
      throw new CliExit(EXIT.no, error.message, { resource: error.resource, refusal: error.refusal });
    }
    throw error;
  }
}

function isNothing(resource: string, { kind }: Refusal): boolean {
  return kind === 'none' || kind === 'missing' || kind === 'finished' || (kind === 'timed-out' && resource === 'task');
}
