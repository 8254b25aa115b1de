/** Users of a store whose witness is on: they change things, add their own entries, and read the record meanwhile. */
import { Verifier } from '../../core/witness/index.ts';
import { Failure } from '../../failure.ts';
import { sha256 } from '../../host/index.ts';
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

  /** Adds an entry of its own, and reads the record while others write it. */
  async #witness(): Promise<void> {
    this.doing = 'looks at the witness';
    const { witness } = this.box;
    const watch = witness.watch({ resource: 'component/sim*' }, { signal: this.soon(1000), keepAlive: false });
    const watched = (async () => {
      for await (const { seq } of watch) this.note(`heard of entry ${seq}`);
    })();
    // Awaited below; an earlier error must not leave it unhandled.
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
    // On a slow network one look takes most of a spell, so the next one has to differ, or it would seem stuck.
    this.doing = `looks at the witness, at entry ${seq}`;
    for await (const entry of witness.entries({ resource, since: 0 })) if (entry.seq > seq) break;
    await this.#readWhole(resource, seq);
    const { mostEntries } = await witness.retention();
    await witness.configure({ mostEntries: mostEntries === 400 ? 300 : 400, mostBytes: 1e9, checkpointMs: 5000 });
    await watched;
    await witness.warnings();
  }

  /** Verifies while others write, seal and trim, which must not look like damage. */
  async #readWhole(resource: string, seq: number): Promise<void> {
    const { witness } = this.box;
    const { finding } = await witness.verify({ onProgress: () => undefined });
    if (finding !== undefined) this.fail(`the record does not verify: ${JSON.stringify(finding)}`);
    const { number } = await witness.checkpoint();
    if (this.random.chance(0.5)) await this.#prove(resource, seq);
    const verifier = new Verifier({ digest: sha256 });
    for await (const line of witness.export({ by: 'simulation' })) verifier.line(line);
    const exported = verifier.finish();
    if (exported.finding !== undefined) this.fail(`the export does not verify: ${JSON.stringify(exported.finding)}`);
    if (this.random.chance(0.3)) await witness.trim();
    const { entries } = await witness.size();
    const { length } = await witness.checkpoints();
    this.note(`${entries} entries, ${exported.entries} exported, checkpoint ${number} of ${length}`);
  }

  async #prove(resource: string, seq: number): Promise<void> {
    try {
      await this.box.witness.proof({ resource, seq });
    } catch (error) {
      // It may have been trimmed since.
      if (!Failure.is(error, 'not-found')) throw error;
    }
  }
}
