/** Checks on every write what must never happen to a task, as an observer that no fault affects. */
import { statusOf, type Task, unpublished } from '../../core/index.ts';
import { partOf, taskResource } from '../../runtime/tasks/keys.ts';
import { withPart } from '../../runtime/tasks/reading.ts';
import type { Changes } from '../../store/index.ts';

export class TaskChecker {
  readonly #tasks = new Map<string, Task>();
  /** By which claim each task was completed, according to its worker. */
  readonly #completed = new Map<string, number>();
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
    if (before.data !== undefined && after.data === undefined) this.#fail(`${resource} has lost its data`);
    if ((was === 'complete' || was === 'failed') && is !== was) this.#fail(`${resource} was ${was} and is ${is} now`);
    if (was !== 'complete' && is === 'complete' && after.owner?.token !== before.owner?.token) {
      this.#fail(`${resource} was completed by #${after.owner?.token}, but #${before.owner?.token} had it`);
    }
    if (before.owner !== undefined && after.owner !== undefined && before.owner.token !== after.owner.token) {
      this.#fail(`${resource} went from #${before.owner.token} to #${after.owner.token} without being free`);
    }
    if (before.owner === undefined && after.owner !== undefined) this.#claimed(before, after, revision);
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

  /** Its worker got the answer that it is complete. */
  completed(id: string, token: number): void {
    const before = this.#completed.get(id);
    if (before !== undefined) this.#fail(`${taskResource(id)} was completed by #${before} and by #${token}`);
    this.#completed.set(id, token);
  }

  /** After a worker with every capability has done all tasks that could be done. */
  atTheEnd(): void {
    for (const task of this.#tasks.values()) {
      const status = statusOf(task);
      const resource = taskResource(task.id);
      if (status === 'running') this.#fail(`${resource} is still ${task.owner?.holder}'s at the end`);
      const token = this.#completed.get(task.id);
      if (token !== undefined && (status !== 'complete' || task.owner?.token !== token)) {
        this.#fail(`${resource} was completed by #${token}, but is ${status} by #${task.owner?.token}`);
      }
      const isBlocked = (task.data?.terms.dependsOn ?? []).some((other) => {
        const found = this.#tasks.get(other);
        return found === undefined || statusOf(found) !== 'complete';
      });
      if (task.data !== undefined && status === 'pending' && !isBlocked) this.#fail(`${resource} was forgotten`);
    }
  }
}
