/** Checks that a phase of a pipeline never runs twice at once, and runs again only if it is idempotent or a person decided so. */
import type { SimulatedProcess } from './world.ts';

export class PhaseChecker {
  readonly #note: (who: string, what: string) => void;
  readonly #fail: (what: string) => void;
  /** Counts phases that began: they are progress, like grants. */
  readonly #progress: () => void;
  readonly #ran = new Set<string>();
  /** How many users are forgetting the pipeline, or do not know whether they did. */
  readonly #forgetting = new Map<string, number>();
  readonly #phases = new Map<string, { readonly process: SimulatedProcess; readonly token: number }>();

  constructor(note: (who: string, what: string) => void, fail: (what: string) => void, progress: () => void) {
    this.#note = note;
    this.#fail = fail;
    this.#progress = progress;
  }

  /** Records that a user forgets the pipeline, which may happen even if the answer gets lost. */
  async forgets(pipeline: string, forget: () => Promise<boolean>): Promise<void> {
    this.#forgetting.set(pipeline, (this.#forgetting.get(pipeline) ?? 0) + 1);
    const isForgotten = await forget();
    this.#forgetting.set(pipeline, (this.#forgetting.get(pipeline) ?? 1) - 1);
    if (isForgotten) this.mayRunAgain(pipeline);
  }

  /** Allows another run: a person decided so, or the pipeline was forgotten. */
  mayRunAgain(pipeline: string): void {
    for (const key of this.#ran) if (key.startsWith(`${pipeline} `)) this.#ran.delete(key);
  }

  /** Returns the function to call when the phase has ended. */
  phaseBegins(
    pipeline: string,
    phase: string,
    token: number,
    isIdempotent: boolean,
    process: SimulatedProcess,
  ): () => void {
    this.#progress();
    const key = `${pipeline} ${phase}`;
    this.#note(process.name, `is at ${key} #${token}`);
    const running = this.#phases.get(pipeline);
    const isRunning = running !== undefined && !running.process.isDead && !running.process.isPaused;
    if (isRunning && running.token === token) this.#fail(`${key} runs twice at once, in ${process.name} as well`);
    const isKnown = (this.#forgetting.get(pipeline) ?? 0) === 0;
    if (!isIdempotent && isKnown && this.#ran.has(key)) this.#fail(`${key} was run again, and nobody had decided so`);
    if (!isIdempotent) this.#ran.add(key);
    const own = { process, token };
    this.#phases.set(pipeline, own);
    return () => {
      if (this.#phases.get(pipeline) === own) this.#phases.delete(pipeline);
    };
  }
}
