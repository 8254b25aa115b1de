/** A pipeline as a line of phases, and what would let it go on. */
import { items, object } from './read.ts';
import { duration } from './time.ts';
import type { Phase, Pipeline, PipelineState, State } from './types.ts';

export type PhaseLook = 'done' | 'now' | 'stopped' | 'later';

export function lookOf(pipeline: Pipeline, { name, state }: Phase): PhaseLook {
  if (state === 'done' || state === 'skipped') return 'done';
  if (['failed', 'interrupted', 'cancelled'].includes(state)) return 'stopped';
  if (name === pipeline.phase) return pipeline.state === 'blocked' ? 'stopped' : 'now';
  return state === 'running' ? 'now' : 'later';
}

const FIRST: readonly PipelineState[] = ['blocked', 'failed', 'running', 'pending', 'cancelled', 'done'];

/** Pipelines that need a person come first, then the newest. */
export function pipelinesShown({ pipelines }: Pick<State, 'pipelines'>, text: string, is: string): readonly Pipeline[] {
  const wanted = text.trim().toLowerCase();
  const has = ({ id, name, phase, driver }: Pipeline): boolean =>
    [id, name, phase ?? '', driver ?? ''].some((one) => one.toLowerCase().includes(wanted));
  return [...pipelines.values()]
    .filter((one) => (is === '' || one.state === is) && (wanted === '' || has(one)))
    .sort(
      (one, other) =>
        FIRST.indexOf(one.state) - FIRST.indexOf(other.state) || (other.startedAt ?? 0) - (one.startedAt ?? 0),
    );
}

export interface Reason {
  readonly guard: string;
  readonly reason: string;
  readonly outlook: string;
}

/** Every reason of every guard, from the server's answer about one pipeline. */
export function reasonsOf(pipeline: Pipeline, json: unknown): readonly Reason[] {
  const guards = items(object(object(json)['blocked'])['guards']).map(object);
  if (guards.length === 0 || pipeline.blocked === null) {
    const { on = '', reasons = [] } = pipeline.blocked ?? {};
    return reasons.map((reason) => ({ guard: on, reason, outlook: '' }));
  }
  return guards.flatMap(({ id, reasons, outlook }) =>
    items(reasons).map((reason) => ({ guard: String(id), reason: String(reason), outlook: String(outlook ?? '') })),
  );
}

/** What makes its driver look again, in words. */
export function wakesOf(pipeline: Pipeline, json: unknown): readonly string[] {
  const { blocked } = pipeline;
  if (blocked === null) return [];
  const { wakeOn, polled, pollMs, againMs } = object(object(json)['blocked']);
  const again = typeof againMs === 'number' ? [`in any case ${duration(againMs)} after it was last looked at`] : [];
  switch (blocked.on) {
    case 'person':
      return ['the answer of a person, and nothing else'];
    case 'holds':
      // A reason is the resource, and after a colon who holds it.
      return blocked.reasons.map((reason) => `${reason.split(': ', 1)[0] ?? ''} becomes free for it`);
    case 'backoff':
      return typeof againMs === 'number' ? [`a pause of ${duration(againMs)}, then its command runs again`] : [];
    default: {
      const every = typeof pollMs === 'number' ? `, looked at every ${duration(pollMs)}` : ', looked at now and then';
      return [
        ...items(wakeOn).map((one) => `the event ${String(one)}`),
        ...items(polled).map((one) => `${String(one)}${every}`),
        ...again,
      ];
    }
  }
}

export interface PhaseLog {
  readonly key: string;
  readonly phase: string;
  readonly run: number;
  readonly text: string;
  readonly leftOut: number;
}

export function logsIn(json: unknown): readonly PhaseLog[] {
  return items(object(json)['logs']).map((one) => {
    const { phase, run, text, leftOut } = object(one);
    return {
      ...{ key: `${String(phase)} ${String(run)}`, phase: String(phase), run: Number(run) || 0 },
      ...{ text: typeof text === 'string' ? text : '', leftOut: Number(leftOut) || 0 },
    };
  });
}
