/** The environment in which the command of a phase runs. */
import { type Phase, pipelineHolder } from '../../core/index.ts';
import type { Hold } from '../holds/hold.ts';
import { childEnvironment, told } from '../processes/environment.ts';
import type { RunParts } from './phase-run.ts';

/** `holds`: the driver's hold, then those of the phase. `mark`: shows later that a process belongs to this run. */
export function phaseEnvironment(
  { url, env, outer }: Pick<RunParts, 'url' | 'env' | 'outer'>,
  id: string,
  phase: Pick<Phase, 'name'>,
  variables: Readonly<Record<string, string>>,
  attempt: number,
  [driver, ...holds]: readonly Hold[],
  mark: string,
): NodeJS.ProcessEnv {
  const own = {
    ...env,
    ...variables,
    SIGNALBOX_PIPELINE: id,
    SIGNALBOX_PHASE: phase.name,
    SIGNALBOX_ATTEMPT: String(attempt),
    SIGNALBOX_DRIVER_TOKEN: String(driver?.token ?? ''),
  };
  const held = holds.map(told);
  const whole = childEnvironment(own, { url: url ?? '', holder: pipelineHolder(id), mark, held, outer });
  // No other process can open the store.
  if (url === undefined) for (const name of ['SIGNALBOX_URL', 'SIGNALBOX_HOLDS']) delete whole[name];
  return whole;
}
