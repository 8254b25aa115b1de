/** Pipelines over HTTP: look, resume, cancel. */
import type { PipelineState } from '../core/guard/inputs.ts';
import type { Choice } from '../core/index.ts';
import { pipelineFrom, type PipelineJson } from '../json/pipeline.ts';
import type { PhaseLog } from '../runtime/pipelines/log.ts';
import type { ListedPipeline } from '../runtime/pipelines/terms.ts';
import { refusedWith } from './problem.ts';
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

  /** All pipelines, in the order in which they were started. */
  async list(options: { readonly state?: PipelineState } = {}): Promise<readonly ListedPipeline[]> {
    const query = { state: options.state };
    const { pipelines } = await this.#requests.ask<{ pipelines: readonly PipelineJson[] }>({
      ...{ method: 'GET', path: '/v1/pipelines', query },
    });
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

  #post(id: string, what: string, body: object): Promise<PipelineAnswer> {
    const path = `/v1/pipelines/${segment(id)}/${what}`;
    return this.#requests.ask({ method: 'POST', path, body, isKeyed: true, waitMs: 10_000 });
  }

  async #shown(id: string): Promise<(PipelineJson & { readonly logs: readonly PhaseLog[] }) | undefined> {
    try {
      return await this.#requests.ask({ method: 'GET', path: `/v1/pipelines/${segment(id)}` });
    } catch (error) {
      refusedWith(error, 'no-such-thing');
      return undefined;
    }
  }
}
