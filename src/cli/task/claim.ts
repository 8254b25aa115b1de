/** `signalbox task claim`: a detached claim, which lasts for its time and is renewed by hand. */
import type { Command } from '../command.ts';
import { spoken } from '../../core/index.ts';
import { NotAcquired } from '../../runtime/refusal.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import { given } from '../arguments.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { addHolder, holderOf } from '../holding.ts';
import { handOver, jsonText, named, printable, tell } from '../output.ts';
import { WaitLimit } from '../opening.ts';
import { withBox } from '../store.ts';
import { taskId } from './arguments.ts';
import { isOwnerGone, OWNER_GONE, sessionsOfOwners } from './owner.ts';

interface Flags {
  readonly holder?: string;
  readonly ttl?: number;
  readonly capability: readonly string[];
  readonly wait?: number;
}

export function claim(command: Command): void {
  addHolder(command)
    .argument('[id]', 'of the task (default: the best pending task that this worker can do)', taskId)
    .duration('--ttl', 'the task is pending again after this time without a renewal (default: 60s)')
    .list('--capability <name>', 'what this worker can do (repeatable)')
    .duration('--wait', 'wait at most this long for it (default: do not wait)')
    .about(`claim a task, or the next one, and print its token

Examples:
  TOKEN=$(signalbox task claim build-7 --holder agent:7 --ttl 5m)
  read -r TOKEN ID < <(signalbox task claim --holder agent:7 --capability gpu --wait 1h)
  signalbox task claim --holder agent:7 --json | jq .data

Prints the token; without an id, the token and the id. With --json also the data.

Exit codes: 75 another worker has it, or it is blocked · 1 there is none, or it is done`)
    .action(async (id: string | undefined, flags: Flags) => {
      const limit = new WaitLimit(flags.wait);
      const work = async (box: Signalbox, signal: AbortSignal): Promise<void> => {
        const { ttl, capability } = flags;
        const wait = limit.leftMs ?? 0;
        const worker = { holder: holderOf(flags), capabilities: capability };
        const options = { ...worker, waitMs: wait, signal, ...given({ ttlMs: ttl }) };
        if (wait > 0) tell(`signalbox: waiting for ${id === undefined ? 'a task' : `task/${id}`}`);
        const claim = await claimed(
          box,
          flags.wait,
          id === undefined ? box.tasks.claimNextDetached(options) : box.tasks.claimDetached(id, options),
        );
        try {
          signal.throwIfAborted();
          const { id: task, holder, token, ttlMs, renewWithinMs, attempt, data } = claim;
          const json = { task, holder, token, ttlMs, renewWithinMs, attempt, data };
          const line = id === undefined ? `${token} ${named(task)}` : String(token);
          handOver(command.isJson ? jsonText(json) : line);
        } catch (error) {
          // No one knows of this claim, so it is released.
          await box.tasks.release(claim.id, { token: claim.token });
          if (error instanceof CliExit) throw error;
          const what = `task/${claim.id}: the token could not be printed, so the claim was released`;
          throw new CliExit(EXIT.notAcquired, what);
        }
      };
      await withBox(command, work, { limit });
    });
}

/**
 * Tells a negative answer (nothing to claim) from a refusal (another worker has it). `waitMs`: the time that the user gave; the
 * library reports what was left of it when the wait began.
 */
export async function claimed<T>(box: Signalbox, waitMs: number | undefined, claiming: Promise<T>): Promise<T> {
  try {
    return await claiming;
  } catch (error) {
    if (!(error instanceof NotAcquired)) throw error;
    const { resource, refusal } = error;
    const isLate = refusal.kind === 'timed-out' && waitMs !== undefined;
    const refused = isLate ? new NotAcquired(resource, { ...refusal, waitedMs: waitMs }) : error;
    const isNothing =
      ['none', 'missing', 'finished'].includes(refusal.kind) || (refusal.kind === 'timed-out' && resource === 'task');
    if (isNothing) throw new CliExit(EXIT.no, refused.message, { resource, refusal: refused.refusal });
    // If the store does not answer, the refusal is still true.
    const owner = await goneOwner(box, refused).catch(() => undefined);
    if (owner === undefined) throw refused;
    const late = isLate ? ` after ${spoken(waitMs)}` : '';
    const hint = waitMs === undefined ? '\n  to wait for that: --wait 1m' : '';
    const told = printable(`${resource}: ${isLate ? 'still ' : ''}claimed by ${owner}${late}; ${OWNER_GONE}`);
    throw new CliExit(EXIT.notAcquired, `${told}${hint}`, { resource, refusal: refused.refusal });
  }
}

/** The worker that has the task, if its process is gone. */
async function goneOwner(box: Signalbox, { resource, refusal }: NotAcquired): Promise<string | undefined> {
  if (refusal.kind !== 'taken' && refusal.kind !== 'timed-out') return undefined;
  const task = await box.tasks.show(resource.replace(/^task\//, ''));
  if (task?.owner === undefined) return undefined;
  return isOwnerGone(task, await sessionsOfOwners(box, [task])) ? task.owner : undefined;
}
