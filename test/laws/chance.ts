/** Chance that comes from a seed: the same again for the same seed. */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A whole number from 0 to `most`. */
  nat(most: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % (most + 1);
  }

  often(percent: number): boolean {
    return this.nat(99) < percent;
  }

  pick<T>(from: readonly T[]): T {
    return from[this.nat(from.length - 1)] as T;
  }

  /** One of them, each as often as its weight says. */
  weighted<T>(from: readonly (readonly [weight: number, one: T])[]): T {
    let left = this.nat(from.reduce((sum, [weight]) => sum + weight, 0) - 1);
    for (const [weight, one] of from) {
      if (left < weight) return one;
      left -= weight;
    }
    return (from[0] as readonly [number, T])[1];
  }
}
