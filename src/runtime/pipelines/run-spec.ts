/** What a pipeline is to do, and where: written when it is started, so that any process can go on with it. */
import { hostname } from 'node:os';
import { type Phase, type PipelineRecord, type Runbook, shown } from '../../core/index.ts';
import type { KeyValue } from '../../store/index.ts';
import { checked, isObject } from '../stored.ts';

export interface RunSpec {
  readonly runbook: Runbook;
  /** Where its commands run, and on which machine that is. */
  readonly cwd: string;
  readonly host: string;
  /** Given when it was started, for all phases. */
  readonly env: Readonly<Record<string, string>>;
  /** How often it looks at what nobody announces. */
  readonly pollMs: number;
  /** How long a command that a guard runs may take, if it was said. */
  readonly commandTimeoutMs?: number;
  /** Which issues are meant, if it was said. */
  readonly issues?: string;
}

export const thisMachine = (): string => hostname();

export function runSpecIn(pair: KeyValue): RunSpec {
  return checked<RunSpec>(pair, ({ runbook, cwd, env }) => {
    const isRunbook = isObject(runbook) && Array.isArray(runbook['phases']) && runbook['phases'].every(isObject);
    if (!isRunbook) return `its runbook is ${shown(runbook)}`;
    if (typeof cwd !== 'string') return `its directory is ${shown(cwd)}`;
    return isObject(env) ? undefined : `its variables are ${shown(env)}`;
  });
}

/** What the runbook says, and what earlier phases have passed on; the closer to the phase, the more it counts. */
export function variablesOf(
  { runbook, env }: RunSpec,
  record: PipelineRecord | undefined,
  phase: Phase,
): Readonly<Record<string, string>> {
  return { ...runbook.env, ...env, ...record?.outputs, ...phase.env };
}
