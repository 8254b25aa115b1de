/** Leads: repeats a run under the lock of the lead until the command ends by itself. */
import { nameProblem } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { randomHex } from '../../host/random.ts';
import { storeUrl } from '../../runtime/location/location.ts';
import { candidateOf, LEADERS } from '../../runtime/members/lead.ts';
import { isEtcdUrl } from '../../store/index.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { say } from '../output.ts';
import { isServerUrl } from '../remote/url.ts';
import { LostWhileEnding, type RunEnded } from './ended.ts';
import { requestOf, type RunOptions, type RunRequest } from './request.ts';
import { run } from './run.ts';

/** The lead counts as lost when this part of `--ttl` is left. A command that ends within it runs beside no other. */
const LEFT_AT_LOSS = 1 / 10;
/** The part of `--ttl` that a command gets to end. It is smaller, because to notice the loss and to kill take time too. */
const USUAL_GRACE = 1 / 15;

export function leadRequestOf(argv: readonly string[], options: RunOptions & { readonly name: string }): RunRequest {
  const { name, ...rest } = options;
  const problem = nameProblem(name, 'lead');
  if (problem !== undefined) throw new Failure('invalid', `--name: ${problem}`);
  const { grace } = options;
  const request = requestOf(argv, { ...rest, lock: [LEADERS] });
  const graceMs = grace === undefined ? Math.floor(request.ttlMs * USUAL_GRACE) : request.graceMs;
  // Named apart from the options: a lead may be called `shared`, which is a mode in --lock.
  return { ...request, graceMs, wants: [{ lock: LEADERS + name }] };
}

export async function leadWith(request: RunRequest, env: NodeJS.ProcessEnv): Promise<RunEnded> {
  const { holder } = request;
  warnOfOverlap(request, storeUrl(request.store, env));
  for (;;) {
    const turn = holder === undefined ? request : { ...request, holder: candidateOf(holder, randomHex(8)) };
    try {
      return await run(turn, env, undefined);
    } catch (error) {
      if (!isLost(error)) throw error;
      if (error.message !== '') say(error.message);
      if (error instanceof LostWhileEnding) return error.ended;
      say('no longer the leader; waiting for the next turn');
    }
  }
}

/** On one machine the next leader sees the command, and waits for its end however long that takes. */
function warnOfOverlap({ graceMs, ttlMs }: RunRequest, url: string): void {
  const isShared = isEtcdUrl(url) || isServerUrl(url);
  if (!isShared || graceMs < ttlMs * LEFT_AT_LOSS) return;
  const most = `a tenth of --ttl (${Math.floor(ttlMs * LEFT_AT_LOSS)}ms)`;
  say(`--grace is not less than ${most}: after a loss, another machine may begin while the command still ends`);
}

/** Lost while the command ran, or before it could begin. */
function isLost(error: unknown): error is CliExit {
  if (!(error instanceof CliExit)) return false;
  const { exitCode, message } = error;
  return exitCode === EXIT.lost || (exitCode === EXIT.notAcquired && message.includes('was lost before'));
}
