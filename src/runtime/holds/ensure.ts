/** Makes a semaphore before its first use, with its settings. */
import { requestProblem, type Settings, settingsProblem } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import type { Runtime } from '../runtime.ts';
import { type AnyCommand, outcomeOf } from '../write/pending-command.ts';
import { refused } from './resource.ts';

/** Throws if it has another capacity. */
export async function ensureSlots(
  runtime: Runtime,
  resource: string,
  capacity: number,
  settings: Settings | undefined,
): Promise<void> {
  runtime.refuseIfClosed();
  const problem =
    requestProblem({ capacity }, ['capacity']) ?? (settings === undefined ? undefined : settingsProblem(settings));
  if (problem !== undefined) throw new Failure('invalid', `${resource}: ${problem}`);
  const command = { ...settings, kind: 'configure', capacity } as AnyCommand;
  const mark = runtime.options.newId();
  const outcome = await outcomeOf(runtime.writerFor(resource), command, runtime.giveUpAt(), mark);
  if (outcome.kind !== 'configured') throw refused(resource, outcome);
}
