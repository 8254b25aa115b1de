/**
 * One string identifies a holder, and its kind comes first: `pipeline:release-7`. A worker and
 * a pipeline of the same id are two holders; two workers on one account are two as well.
 */

export type HolderKind = 'agent' | 'job' | 'pipeline' | 'user' | 'worker';

/** The name of a coding agent as a holder. */
export const agentHolder = (id: string): string => holderOf('agent', id);

/** A job of a CI system. */
export const jobHolder = (id: string): string => holderOf('job', id);

/** The name of a pipeline as a holder. */
export const pipelineHolder = (id: string): string => holderOf('pipeline', id);

/** A person at a keyboard. */
export const userHolder = (id: string): string => holderOf('user', id);

/** The name of a worker as a holder. */
export const workerHolder = (id: string): string => holderOf('worker', id);

export function holderOf(kind: HolderKind, id: string): string {
  return `${kind}:${id}`;
}
