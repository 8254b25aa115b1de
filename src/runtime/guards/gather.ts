/**
 * Gathers the inputs that conditions need: each once, all concurrently. An input that could not be read becomes an error,
 * never a guess, so that no guard passes because of it.
 */
import type { Adapters } from '../../adapters/adapters.ts';
import type { Gathered, Input, Inputs, Own } from '../../core/index.ts';
import { Concurrency } from './concurrency.ts';
import {
  lockInput,
  type Looks,
  memberInput,
  pipelineInput,
  type SawHolds,
  semaphoreInput,
  taskInput,
} from './looks.ts';
import type { Reads } from './reads.ts';

/** How many looks run at once; more would slow each other down. */
const MOST_CHILDREN = 8;
/** How many commands run at once. Commands are slow, and must leave room for quick looks, such as whether a branch exists. */
const MOST_COMMANDS = 4;

export interface GatherOptions {
  readonly signal?: AbortSignal | undefined;
  /** Holds of these holders do not count: a phase may look whether its own lock is free. */
  readonly own?: Own | undefined;
  readonly adapters: () => Promise<Adapters>;
  /** Inputs that are known already and need no look. */
  readonly given?: Partial<Inputs> | undefined;
}

/** The part of a command's output that is kept to say why it failed. */
const LAST_OUTPUT = 1_000;

export class Gatherer {
  readonly #reads: Reads;
  readonly #looks: Looks;
  readonly #saw: SawHolds;
  readonly #children = new Concurrency(MOST_CHILDREN);
  readonly #commands = new Concurrency(MOST_COMMANDS);

  constructor(reads: Reads, looks: Looks, saw: SawHolds) {
    this.#reads = reads;
    this.#looks = looks;
    this.#saw = saw;
  }

  async gather(inputs: readonly Input[], options: GatherOptions): Promise<Inputs> {
    options.signal?.throwIfAborted();
    const gathered: Record<string, unknown> = { ...options.given };
    const wanted = new Map(inputs.filter(({ key }) => !(key in gathered)).map((input) => [input.key, input]));
    const looking = [...wanted.values()].map(async (input) => {
      gathered[input.key] = await this.#gatherOne(input, options);
    });
    await unlessAborted(Promise.all(looking), options.signal);
    return gathered as Inputs;
  }

  async #gatherOne(input: Input, options: GatherOptions): Promise<Gathered> {
    try {
      return { value: await this.#look(input, options) };
    } catch (error) {
      return { error: error instanceof Error ? error.message : String(error) };
    }
  }

  #look(
    input: Input,
    { signal, own, adapters }: GatherOptions,
  ): Promise<Extract<Gathered, { value: unknown }>['value']> {
    const child = async <T>(work: (found: Adapters) => Promise<T>, gate = this.#children): Promise<T> => {
      const found = await adapters();
      return gate.run(() => {
        signal?.throwIfAborted();
        return work(found);
      });
    };
    switch (input.kind) {
      case 'lock':
        return lockInput(this.#reads, input.name, own, this.#saw);
      case 'semaphore':
        return semaphoreInput(this.#reads, input.name, own, this.#saw);
      case 'task':
        return taskInput(this.#looks.tasks, input.id);
      case 'pipeline':
        return pipelineInput(this.#looks.pipelines, input.id);
      case 'member':
        return memberInput(this.#reads, input.id);
      case 'branch':
        return child(({ git }) => git.branch(input.name, signal));
      case 'worktrees':
        return child(({ git }) => git.worktrees(input.branch, signal));
      case 'worktree':
        return child(({ git }) => git.worktree(input.path, signal));
      case 'branchMerged':
        return child(({ git }) => git.merged(input.branch, input.into, signal));
      case 'session':
        return child(({ sessions }) => sessions.session(input.name, signal));
      case 'command':
        return child(async ({ commands }) => {
          const { exitCode, output } = await commands.run(input.cmd, signal);
          return output === '' ? { exitCode } : { exitCode, output: output.slice(-LAST_OUTPUT) };
        }, this.#commands);
      case 'file':
        return adapters().then(({ files }) => files.file(input.path, signal));
      case 'fileText':
        return adapters().then(({ files }) => files.text(input.path, signal));
      case 'issues':
        return adapters().then(({ issues }) => issues.issues(input.filter, signal));
      case 'issue':
        return adapters().then(({ issues }) => issues.issue(input.id, signal));
    }
  }
}

/** Ends the wait for a look that ignores the signal. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  let stop = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error);
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
