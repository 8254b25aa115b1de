/** Pipelines over HTTP: look, resume, cancel, forget. */
import type { PipelineState } from '../core/guard/inputs.ts';
import type { Choice } from '../core/index.ts';
import { pipelineFrom, type PipelineJson } from '../json/pipeline.ts';
import type { PhaseLog } from '../runtime/pipelines/log.ts';
import type { ListedPipeline } from '../runtime/pipelines/terms.ts';
import type { Malformed } from '../runtime/stored.ts';
import { type Requests, segment } from './requests.ts';

/** The answer to resuming or cancelling a pipeline. */
export interface PipelineAnswer {
  /** The id of the pipeline. */
  readonly pipeline: string;
  /** `cancelling`: its driver has to stop a command first. */
  readonly outcome: 'resumed' | 'cancelled' | 'cancelling';
  /** Who did it. */
  readonly by: string;
}

/** The pipelines of a store, at a server. You start one on the machine where its commands run. */
export class RemotePipelines {
  readonly #requests: Requests;

  /** @internal */
  constructor(requests: Requests) {
    this.#requests = requests;
  }

  /** All pipelines, in the order in which they were started. `onMalformed` gets the keys that cannot be read. */
  async list(
    options: { readonly state?: PipelineState; readonly onMalformed?: (one: Malformed) => void } = {},
  ): Promise<readonly ListedPipeline[]> {
    const { state, onMalformed } = options;
    const { pipelines, malformed = [] } = await this.#requests.get<{
      readonly pipelines: readonly PipelineJson[];
      readonly malformed?: readonly Malformed[];
    }>('/v1/pipelines', { state });
    for (const one of malformed) onMalformed?.(one);
    return pipelines.map(pipelineFrom);
  }

  /** One pipeline; undefined if there is none with this id. */
  async show(id: string): Promise<ListedPipeline | undefined> {
    const found = await this.#shown(id);
    if (found === undefined) return undefined;
    const { logs: _, ...pipeline } = found;
    return pipelineFrom(pipeline as PipelineJson);
  }

  /** The output of its commands. */
  async logs(id: string): Promise<readonly PhaseLog[]> {
    return (await this.#shown(id))?.logs ?? [];
  }

  /** Lets the server drive it from now on, if that server runs commands; for administrators. */
  resume(
    id: string,
    options: {
      readonly decision?: Choice;
      readonly question?: number;
      readonly from?: string;
      readonly by?: string;
    } = {},
  ): Promise<PipelineAnswer> {
    return this.#post(id, 'resume', options);
  }

  /** Ends it for good, for administrators. */
  cancel(id: string, options: { readonly reason?: string; readonly by?: string } = {}): Promise<PipelineAnswer> {
    return this.#post(id, 'cancel', options);
  }

  /** Deletes a pipeline that has ended, for administrators. False if there is no such pipeline, or if it has not ended. */
  async forget(id: string): Promise<boolean> {
    const ask = { method: 'DELETE', path: `/v1/pipelines/${segment(id)}`, isKeyed: true } as const;
    return this.#requests.did(ask, 'no-such-thing', 'wrong-state');
  }

  #post(id: string, what: string, body: object): Promise<PipelineAnswer> {
    const path = `/v1/pipelines/${segment(id)}/${what}`;
    return this.#requests.ask({ method: 'POST', path, body, isKeyed: true, waitMs: 10_000 });
  }

  #shown(id: string): Promise<(PipelineJson & { readonly logs: readonly PhaseLog[] }) | undefined> {
    return this.#requests.found(`/v1/pipelines/${segment(id)}`);
  }
}
