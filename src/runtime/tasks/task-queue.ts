/** Tasks of one kind that can be claimed, oldest first. Most come at the end and go from the front. */

interface Place {
  readonly published: number;
  readonly id: string;
}

export class TaskQueue {
  /** From `#head` on in order; those that are not live any more are skipped, and swept out when they are many. */
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

  *[Symbol.iterator](): Iterator<Place> {
    for (let at = this.#head; at < this.#places.length; at++) if (this.#isLive(at)) yield this.#places[at] as Place;
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
    // One that went and came back may still have its place.
    if (this.#places[low]?.id === place.id) return;
    if (low === this.#head && low > 0) this.#places[--this.#head] = place;
    else this.#places.splice(low, 0, place);
  }
}

function isBefore(a: Place, b: Place): boolean {
  return a.published < b.published || (a.published === b.published && a.id < b.id);
}
