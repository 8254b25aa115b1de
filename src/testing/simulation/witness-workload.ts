/** Users of a store whose witness is on: they change things, enter something of their own, and read the record meanwhile. */
import { Failure } from '../../failure.ts';
import { type Story, User } from './user.ts';

export class WitnessWorker extends User {
  protected stories(): readonly Story[] {
    return [() => this.#write(), () => this.#write(), () => this.#publish(), () => this.#witness()];
  }

  async #write(): Promise<void> {
    this.doing = 'writes';
    await this.box.lock(this.pickLock()).run((hold) => this.using(hold), { waitMs: 3000, reason: 'simulated' });
    await this.box.semaphore('slots', { capacity: 2 }).run((hold) => this.using(hold), { waitMs: 1000 });
  }

  async #publish(): Promise<void> {
    this.doing = 'publishes a task';
    await this.box.tasks.publish(`${this.name}-${this.random.whole(1, 1e9)}`, { by: this.name });
  }

  /** Enters something of its own, and reads the record while others write it. */
  async #witness(): Promise<void> {
    this.doing = 'looks at the witness';
    const { witness } = this.box;
    const watch = witness.watch({ resource: 'component/sim*' }, { signal: this.soon(1000), keepAlive: false });
    const watched = (async () => {
      for await (const { seq } of watch) this.note(`heard of entry ${seq}`);
    })();
    // Awaited below; what goes wrong before must not leave it alone.
    watched.catch(() => undefined);
    if (!(await witness.isOn())) this.fail('the witness is off');
    const own = {
      event: 'sim:looked',
      component: 'sim',
      traceId: 'trace-1',
      actor: this.name,
      payload: { by: this.name },
    };
    const { resource, seq } = await witness.record({ ...own, sensitive: this.random.chance(0.5) });
    for await (const entry of witness.entries({ resource, since: 0 })) if (entry.seq > seq) break;
    await this.#readWhole(resource, seq);
    const { mostEntries } = await witness.retention();
    await witness.configure({ mostEntries: mostEntries === 400 ? 300 : 400, mostBytes: 1e9, checkpointMs: 5000 });
    await watched;
  }

  /**
   * What is read while others write and trim is not of one revision yet, so that `verify` may find what is not wrong: its
   * findings do not count here. The chains themselves are checked at every revision (`WitnessChecker`).
   */
  async #readWhole(resource: string, seq: number): Promise<void> {
    const { witness } = this.box;
    try {
      const { finding } = await witness.verify({ onProgress: () => undefined });
      const { number } = await witness.checkpoint();
      if (this.random.chance(0.5)) await witness.proof({ resource, seq });
      let lines = 0;
      for await (const line of witness.export({ by: 'simulation' })) lines += line.length > 0 ? 1 : 0;
      if (this.random.chance(0.3)) await witness.trim();
      const { entries } = await witness.size();
      const { length } = await witness.checkpoints();
      this.note(`${finding?.kind ?? 'good'}: ${entries} entries, ${lines} lines, checkpoint ${number} of ${length}`);
    } catch (error) {
      if (!UNSETTLED.some((code) => Failure.is(error, code))) throw error;
    }
  }
}

const UNSETTLED = ['inconsistent', 'corrupt', 'not-found'] as const;
