/** Leads: repeats a run under the lock of the lead until the command ends by itself. */
import { nameProblem } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { randomHex } from '../../host/random.ts';
import { candidateOf, LEADERS } from '../../runtime/members/lead.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { complain, printable } from '../output.ts';
import { LostWhileEnding, type RunEnded } from './ended.ts';
import { requestOf, type RunOptions, type RunRequest } from './request.ts';
import { run } from './run.ts';

export function leadRequestOf(argv: readonly string[], options: RunOptions & { readonly name: string }): RunRequest {
  const { name, ...rest } = options;
  const problem = nameProblem(name, 'lead');
  if (problem !== undefined) throw new Failure('invalid', `--name: ${problem}`);
  // Named apart from the options: a lead may be called `shared`, which is a mode in --lock.
  return { ...requestOf(argv, { ...rest, lock: [LEADERS] }), wants: [{ lock: LEADERS + name }] };
}

export async function leadWith(request: RunRequest, env: NodeJS.ProcessEnv): Promise<RunEnded> {
  const { holder } = request;
  for (;;) {
    const turn = holder === undefined ? request : { ...request, holder: candidateOf(holder, randomHex(8)) };
    try {
      return await run(turn, env, undefined);
    } catch (error) {
      if (!isLost(error)) throw error;
      if (error.message !== '') complain(`signalbox: ${printable(error.message)}`);
      if (error instanceof LostWhileEnding) return error.ended;
      complain('signalbox: no longer the leader; waiting for the next turn');
    }
  }
}

/** Lost while the command ran, or before it could begin. */
function isLost(error: unknown): error is CliExit {
  if (!(error instanceof CliExit)) return false;
  return (
    error.exitCode === EXIT.lost || (error.exitCode === EXIT.notAcquired && error.message.includes('was lost before'))
  );
}
