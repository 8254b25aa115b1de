import type { LeaseId } from '../../store/index.ts';
import type { Runtime } from '../runtime.ts';

/** The lease that lets a failed task pause. It is granted before the write that puts the task on it. */
export class BackoffLease {
  readonly #runtime: Runtime;
  #lease: { readonly id: LeaseId; readonly ms: number } | undefined;
  /** A task may rest on it. Then it runs its time, even if no answer came. */
  isSent = false;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  get id(): LeaseId | undefined {
    return this.#lease?.id;
  }

  get ms(): number | undefined {
    return this.#lease?.ms;
  }

  async adjust(ms: number | undefined): Promise<void> {
    if (this.ms === ms) return;
    await this.drop();
    this.forget();
    if (ms === undefined) return;
    const { store, stopped } = this.#runtime;
    this.#lease = { id: (await store.grantLease(ms, stopped)).id, ms };
  }

  forget(): void {
    this.#lease = undefined;
    this.isSent = false;
  }

  /** Revokes a lease that no task rests on. */
  async drop(): Promise<void> {
    if (this.#lease === undefined || this.isSent) return;
    await this.#runtime.store.revokeLease(this.#lease.id).catch(() => undefined);
  }
}
