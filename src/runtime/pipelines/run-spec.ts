/** The spec of a pipeline: what it does, and where. Written when it is started, so that any process can go on with it. */
import { hostname } from 'node:os';
import { type Phase, type PipelineRecord, type Runbook, shown, isRecord } from '../../core/index.ts';
import type { KeyValue } from '../../store/index.ts';
import { checked } from '../layout.ts';

export interface RunSpec {
  readonly runbook: Runbook;
  /** The directory where its commands run, and the machine. */
  readonly cwd: string;
  readonly host: string;
  /** The variables given at the start, for all phases. */
  readonly env: Readonly<Record<string, string>>;
  /** The interval between looks at inputs that announce no changes. */
  readonly pollMs: number;
  /** The time limit for commands of guards, if given. */
  readonly commandTimeoutMs?: number;
  /** The issues that guards look at, if given. */
  readonly issues?: string;
}

export const thisMachine = (): string => hostname();

export function runSpecIn(pair: KeyValue): RunSpec {
  return checked<RunSpec>(pair, ({ runbook, cwd, env }) => {
    const isRunbook = isRecord(runbook) && Array.isArray(runbook['phases']) && runbook['phases'].every(isRecord);
    if (!isRunbook) return `its runbook is ${shown(runbook)}`;
    if (typeof cwd !== 'string') return `its directory is ${shown(cwd)}`;
    return isRecord(env) ? undefined : `its variables are ${shown(env)}`;
  });
}

/** The variables of the runbook, of earlier phases and of the phase; the closer to the phase, the higher the precedence. */
export function variablesOf(
  { runbook, env }: RunSpec,
  record: PipelineRecord | undefined,
  phase: Phase,
): Readonly<Record<string, string>> {
  return { ...runbook.env, ...env, ...record?.outputs, ...phase.env };
}
