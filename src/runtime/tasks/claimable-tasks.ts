/**
 * All tasks that can be claimed now, by what they ask for: one line for each priority and set of capabilities, so that a
 * worker never looks at those that are not for it, however many there are.
 */
import { lacking, type TaskData } from '../../core/index.ts';
import { TaskQueue } from './task-queue.ts';

interface Kind {
  readonly capabilities: readonly string[];
  readonly line: TaskQueue;
}

export class ClaimableTasks {
  readonly #byPriority = new Map<number, Map<string, Kind>>();
  readonly #placed = new Map<string, { readonly line: TaskQueue; readonly priority: number; readonly kind: string }>();

  get size(): number {
    return this.#placed.size;
  }

  has(id: string): boolean {
    return this.#placed.has(id);
  }

  add(id: string, { terms, published }: TaskData): void {
    this.delete(id);
    const { capabilities, priority } = terms;
    const kind = JSON.stringify([...capabilities].sort());
    const kinds = this.#byPriority.get(priority) ?? new Map<string, Kind>();
    this.#byPriority.set(priority, kinds);
    const { line } = kinds.get(kind) ?? { line: new TaskQueue() };
    kinds.set(kind, { capabilities, line });
    line.add(id, published);
    this.#placed.set(id, { line, priority, kind });
  }

  delete(id: string): void {
    const placed = this.#placed.get(id);
    if (placed === undefined) return;
    this.#placed.delete(id);
    placed.line.delete(id);
    if (placed.line.size > 0) return;
    const kinds = this.#byPriority.get(placed.priority);
    kinds?.delete(placed.kind);
    if (kinds?.size === 0) this.#byPriority.delete(placed.priority);
  }

  /** The first `most` of the highest priority of which there is any: for a worker that has these, without those. */
  best(has: readonly string[], most: number, without: (id: string) => boolean): readonly string[] {
    const priorities = [...this.#byPriority.keys()].sort((a, b) => b - a);
    for (const priority of priorities) {
      const fitting = [...(this.#byPriority.get(priority) as Map<string, Kind>).values()].filter(
        ({ capabilities }) => lacking({ capabilities, priority, dependsOn: [], retries: 0 }, has).length === 0,
      );
      const found = oldest(
        fitting.map(({ line }) => line),
        most,
        without,
      );
      if (found.length > 0) return found;
    }
    return [];
  }
}

function oldest(lines: readonly TaskQueue[], most: number, without: (id: string) => boolean): readonly string[] {
  const each = lines.map((line) => firstOf(line, most, without));
  const [only = []] = each;
  const all = each.length > 1 ? each.flat().sort((a, b) => a.published - b.published) : only;
  return all.slice(0, most).map(({ id }) => id);
}

function firstOf(line: TaskQueue, most: number, without: (id: string) => boolean): { id: string; published: number }[] {
  const found = [];
  for (const place of line) {
    if (without(place.id)) continue;
    found.push(place);
    if (found.length === most) break;
  }
  return found;
}
