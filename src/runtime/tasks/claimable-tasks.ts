/**
 * All tasks that can be claimed now, by what they ask for: one queue for each priority and set of capabilities, so that a
 * worker never looks at tasks that are not for it, however many there are.
 */
import { lacking, type TaskData } from '../../core/index.ts';

interface Kind {
  readonly capabilities: readonly string[];
  readonly queue: TaskQueue;
}

export class ClaimableTasks {
  readonly #byPriority = new Map<number, Map<string, Kind>>();
  readonly #placed = new Map<string, { readonly queue: TaskQueue; readonly priority: number; readonly kind: string }>();

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
    const { queue } = kinds.get(kind) ?? { queue: new TaskQueue() };
    kinds.set(kind, { capabilities, queue });
    queue.add(id, published);
    this.#placed.set(id, { queue, priority, kind });
  }

  delete(id: string): void {
    const placed = this.#placed.get(id);
    if (placed === undefined) return;
    this.#placed.delete(id);
    placed.queue.delete(id);
    if (placed.queue.size > 0) return;
    const kinds = this.#byPriority.get(placed.priority);
    kinds?.delete(placed.kind);
    if (kinds?.size === 0) this.#byPriority.delete(placed.priority);
  }

  /**
   * The oldest `most` tasks of the highest priority that has any: for a worker with these capabilities, passing over what
   * `without` names.
   */
  best(capabilities: readonly string[], most: number, without: (id: string) => boolean): readonly string[] {
    const priorities = [...this.#byPriority.keys()].sort((a, b) => b - a);
    for (const priority of priorities) {
      const fitting = [...(this.#byPriority.get(priority) as Map<string, Kind>).values()].filter(
        (kind) => lacking(kind, capabilities).length === 0,
      );
      const found = oldest(
        fitting.map(({ queue }) => queue),
        most,
        without,
      );
      if (found.length > 0) return found;
    }
    return [];
  }
}

function oldest(queues: readonly TaskQueue[], most: number, without: (id: string) => boolean): readonly string[] {
  const each = queues.map((queue) => queue.first(most, without));
  const [only = []] = each;
  const all = each.length > 1 ? each.flat().sort((a, b) => a.published - b.published) : only;
  return all.slice(0, most).map(({ id }) => id);
}

interface Place {
  readonly published: number;
  readonly id: string;
}

/** Tasks of one kind that can be claimed, oldest first. Most are added at the end and taken from the front. */
export class TaskQueue {
  /** In order from `#head` on. Places that are no longer live are skipped, and swept out once they are many. */
  #places: Place[] = [];
  #head = 0;
  readonly #live = new Set<string>();

  get size(): number {
    return this.#live.size;
  }

  add(id: string, published: number): void {
    if (this.#live.has(id)) return;
    this.#live.add(id);
    const place = { id, published };
    const last = this.#places.at(-1);
    if (last === undefined || isBefore(last, place)) this.#places.push(place);
    else this.#insert(place);
  }

  delete(id: string): void {
    if (!this.#live.delete(id)) return;
    while (this.#head < this.#places.length && !this.#isLive(this.#head)) this.#head += 1;
    if (this.#places.length <= 2 * this.#live.size + 64) return;
    this.#places = this.#places.slice(this.#head).filter((place) => this.#live.has(place.id));
    this.#head = 0;
  }

  first(most: number, without: (id: string) => boolean): readonly Place[] {
    const found: Place[] = [];
    for (let at = this.#head; at < this.#places.length && found.length < most; at++) {
      const place = this.#places[at] as Place;
      if (this.#isLive(at) && !without(place.id)) found.push(place);
    }
    return found;
  }

  #isLive(at: number): boolean {
    return this.#live.has((this.#places[at] as Place).id);
  }

  #insert(place: Place): void {
    let low = this.#head;
    let high = this.#places.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isBefore(this.#places[middle] as Place, place)) low = middle + 1;
      else high = middle;
    }
    // A task that went and came back may still have its place.
    if (this.#places[low]?.id === place.id) return;
    if (low === this.#head && low > 0) this.#places[--this.#head] = place;
    else this.#places.splice(low, 0, place);
  }
}

function isBefore(a: Place, b: Place): boolean {
  return a.published < b.published || (a.published === b.published && a.id < b.id);
}
