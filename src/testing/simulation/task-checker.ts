/** Checks every write of a task, as an observer that no fault affects. */
import { statusOf, type Task, unpublished } from '../../core/index.ts';
import { partOf, taskResource } from '../../runtime/tasks/keys.ts';
import { withPart } from '../../runtime/tasks/reading.ts';
import type { Changes } from '../../store/index.ts';

export class TaskChecker {
  readonly #tasks = new Map<string, Task>();
  /** The claims that completed a task, according to the store. */
  readonly #completed = new Set<string>();
  readonly #note: (what: string) => void;
  readonly #fail: (what: string) => void;
  readonly #forced: (id: string, token: number) => void;
  claims = 0;

  constructor(note: (what: string) => void, fail: (what: string) => void, forced: (id: string, token: number) => void) {
    this.#note = note;
    this.#fail = fail;
    this.#forced = forced;
  }

  stored({ changes, revision }: Changes): void {
    const touched = new Map<string, Task>();
    for (const change of changes) {
      const found = partOf(change.kind === 'put' ? change.pair.key : change.key);
      if (found === undefined) continue;
      const { id, part } = found;
      const before = touched.get(id) ?? this.#tasks.get(id) ?? unpublished(id);
      const gone = { [part === 'signalbox' ? 'bookkeeping' : part]: undefined };
      touched.set(id, change.kind === 'put' ? withPart(before, change.pair) : { ...before, ...gone });
    }
    for (const [id, after] of touched) {
      const before = this.#tasks.get(id) ?? unpublished(id);
      this.#tasks.set(id, after);
      const owner = after.owner === undefined ? '' : ` by ${after.owner.holder} #${after.owner.token}`;
      this.#note(
        `r${revision} ${taskResource(id)}: ${statusOf(after)}${owner}, says ${after.status?.word ?? 'nothing'}`,
      );
      this.#look(before, after, revision);
    }
  }

  #look(before: Task, after: Task, revision: number): void {
    const resource = taskResource(after.id);
    const [was, is] = [statusOf(before), statusOf(after)];
    for (const { type, forced } of after.bookkeeping?.entry.events ?? []) {
      if (type === 'task:released' && forced === true && before.owner !== undefined) {
        this.#forced(after.id, before.owner.token);
      }
    }
    const { losses = 0, requeue } = after.bookkeeping?.entry ?? {};
    if (before.data !== undefined && after.data === undefined) return this.#gone(before, after);
    const isRequeued = is === 'pending' && requeue !== undefined && requeue !== before.bookkeeping?.entry.requeue;
    if ((was === 'complete' || was === 'failed') && is !== was && !isRequeued) {
      this.#fail(`${resource} was ${was} and is ${is} now`);
    }
    if (isRequeued && was === 'running') this.#fail(`${resource} was requeued while ${before.owner?.holder} had it`);
    if (was !== 'complete' && is === 'complete') this.#wasCompleted(before, after);
    if (losses >= (after.data?.terms.lossLimit ?? losses + 1) && is !== 'failed') {
      this.#fail(`${resource} has lost ${losses} workers and is ${is}`);
    }
    if (before.owner !== undefined && after.owner !== undefined && before.owner.token !== after.owner.token) {
      this.#fail(`${resource} went from #${before.owner.token} to #${after.owner.token} without being free`);
    }
    if (before.owner !== undefined || after.owner === undefined) return;
    if (is !== 'failed') return this.#claimed(before, after, revision);
    // No worker has claimed it: it failed because it lost too many workers.
    const { lossLimit } = after.data?.terms ?? { lossLimit: 0 };
    if (losses < lossLimit) this.#fail(`${resource} failed after ${losses} of ${lossLimit} losses`);
    if (after.owner.lease !== null) this.#fail(`${resource} failed, but its owner is on a lease`);
  }

  /** Checks a forgotten task: all its keys go at once, and only if no worker had it. */
  #gone(before: Task, after: Task): void {
    const resource = taskResource(after.id);
    if (statusOf(before) === 'running') {
      this.#fail(`${resource} was forgotten while ${before.owner?.holder} had it`);
    }
    if (after.owner !== undefined || after.status !== undefined || after.bookkeeping !== undefined) {
      this.#fail(`${resource} has lost its data`);
    }
  }

  #wasCompleted(before: Task, after: Task): void {
    const token = after.owner?.token;
    this.#completed.add(`${after.id} #${token}`);
    if (token !== before.owner?.token) {
      this.#fail(`${taskResource(after.id)} was completed by #${token}, but #${before.owner?.token} had it`);
    }
  }

  #claimed(before: Task, after: Task, revision: number): void {
    this.claims += 1;
    const resource = taskResource(after.id);
    if (after.owner?.token !== revision)
      this.#fail(`${resource} was claimed with #${after.owner?.token} at ${revision}`);
    if (after.owner?.lease === null) this.#fail(`${resource} was claimed on no lease`);
    if (before.data === undefined) this.#fail(`${resource} was claimed before it was published`);
    for (const other of after.data?.terms.dependsOn ?? []) {
      const task = this.#tasks.get(other);
      if (task === undefined || statusOf(task) !== 'complete') this.#fail(`${resource} was claimed before ${other}`);
    }
  }

  /** Records that a worker got the answer that its task is complete. */
  completed(id: string, token: number): void {
    if (!this.#completed.has(`${id} #${token}`)) {
      this.#fail(`the worker of ${taskResource(id)} heard that #${token} has completed it, which it never did`);
    }
  }

  /** Checks the rest after a worker with every capability has done all tasks that it could. */
  atTheEnd(): void {
    for (const task of this.#tasks.values()) {
      const status = statusOf(task);
      const resource = taskResource(task.id);
      if (status === 'running') this.#fail(`${resource} is still ${task.owner?.holder}'s at the end`);
      const isBlocked = (task.data?.terms.dependsOn ?? []).some((other) => {
        const found = this.#tasks.get(other);
        return found === undefined || statusOf(found) !== 'complete';
      });
      if (task.data !== undefined && status === 'pending' && !isBlocked) this.#fail(`${resource} was forgotten`);
    }
  }
}
