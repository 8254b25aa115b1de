/** What users do with pipelines: several processes start, drive, stop, resume and cancel them. */
import type { PhaseFunction } from '../../runtime/pipelines/functions.ts';
import { defineRunbook, type DefinedRunbook } from '../../runtime/pipelines/define.ts';
import { type Story, Thrown, User } from './user.ts';

const IDS = ['deploy-1', 'deploy-2', 'deploy-3'];

export class PipelineWorker extends User {
  protected stories(): readonly Story[] {
    return [
      () => this.#run(),
      () => this.#start(),
      () => this.#resume(),
      () => this.#resume(),
      () => this.#look(),
      () => this.#standBy(),
    ];
  }

  async #run(): Promise<void> {
    const id = this.#pickId();
    this.doing = `runs ${id}`;
    const options = { id, by: this.name, waits: false, signal: this.soon(8000), cwd: '/', env: { BY: this.name } };
    const { kind } = await this.box.pipelines.run(this.#runbook(), {
      ...options,
      onChange: () => this.#maybeThrow(),
      onStandBy: () => this.note(`stands by for ${id}`),
    });
    this.note(`ran ${id}: ${kind}`);
  }

  async #start(): Promise<void> {
    const id = this.#pickId();
    this.doing = `starts ${id}`;
    await this.box.pipelines.start(this.#runbook(), { id, cwd: '/', pollMs: 500 });
    if (this.random.chance(0.1))
      await this.box.pipelines.cancel(id, {
        ...{ by: this.name, reason: 'simulated', expected: {}, signal: this.soon(3000) },
      });
  }

  async #resume(): Promise<void> {
    const id = this.#pickId();
    this.doing = `resumes ${id}`;
    const { functions } = this.#runbook();
    const view = await this.box.pipelines.show(id);
    const question = view?.blocked !== undefined && 'question' in view.blocked ? view.blocked.question : undefined;
    const decision = question === undefined ? {} : { decision: 'rerun' as const, question };
    const again = question === undefined && view?.state === 'failed' ? { from: 'build' } : {};
    if (question !== undefined || view?.state === 'failed') this.checker.phases.mayRunAgain(id);
    const standsBy = this.random.chance(0.3);
    const by = this.name;
    const options = {
      functions,
      by,
      cwd: '/',
      waits: false,
      signal: this.soon(6000),
      standsBy,
      // A pipeline that was started again meanwhile is not the one that this user saw.
      expected: view === undefined ? {} : { startedAt: view.startedAt },
      graceMs: 0,
      onStandBy: () => this.#maybeThrow(),
      ...decision,
      ...again,
    };
    const outcome = await this.box.pipelines.resume(id, { ...options, onChange: () => this.#maybeThrow() });
    this.note(`resumed ${id}: ${outcome.kind}`);
  }

  /** A standing driver does not have the functions of these phases, so it looks at every pipeline and leaves it alone. */
  async #standBy(): Promise<void> {
    this.doing = 'stands by for all';
    await this.box.pipelines.driveAll({
      signal: this.soon(3000),
      graceMs: 0,
      onChange: () => this.#maybeThrow(),
      onStandBy: (id) => this.note(`stands by for ${id}`),
      onSkipped: (id) => this.note(`leaves ${id} alone`),
      onTrouble: (id, error) => this.note(`cannot drive ${id}: ${error.message}`),
    });
  }

  async #look(): Promise<void> {
    const id = this.#pickId();
    this.doing = `looks at ${id}`;
    const { pipelines } = this.box;
    const [all, logs, state] = await Promise.all([
      pipelines.list({ state: 'running' }),
      pipelines.logs(id),
      pipelines.look(id),
    ]);
    this.note(`${all.length} pipelines, ${logs.length} logs, ${JSON.stringify(state)}`);
    if (this.random.chance(0.2)) await this.checker.phases.forgets(id, () => pipelines.forget(id));
  }

  /** Three phases: each counts its runs, and no other process may run the same pipeline meanwhile. */
  #runbook(): DefinedRunbook {
    return defineRunbook({
      name: 'deploy',
      phases: [
        { name: 'build', run: this.#phase(true), idempotent: true },
        { name: 'push', run: this.#phase(false), holds: { locks: this.locks[0] as string } },
        { name: 'tell', run: this.#phase(true), idempotent: true, retries: 1 },
      ],
    });
  }

  #phase(isIdempotent: boolean): PhaseFunction {
    return async ({ pipeline, phase, signal, token, log }) => {
      const leave = this.checker.phases.phaseBegins(pipeline, phase, token, isIdempotent, this.process);
      try {
        log('simulated');
        await this.pause(this.random.chance(0.1) ? 4000 : 200);
        signal.throwIfAborted();
        if (this.random.chance(0.1)) throw new Error('simulated: the phase failed');
      } finally {
        leave();
      }
    };
  }

  #maybeThrow(): void {
    if (this.random.chance(0.1)) throw new Thrown('simulated: onChange failed');
  }

  #pickId(): string {
    return this.random.pick(IDS);
  }
}
