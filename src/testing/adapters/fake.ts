/** The base of the fakes: remembers what it was asked, and fails on demand. */

/** The method and its arguments: `['branch', 'main']`. */
export type Question = readonly [method: string, ...args: unknown[]];

export abstract class Fake {
  readonly #asked: Question[] = [];
  #trouble: Error | undefined;

  /** Everything it was asked, in order. */
  get asked(): readonly Question[] {
    return this.#asked;
  }

  forget(): void {
    this.#asked.length = 0;
  }

  /** Makes every question fail with this error from now on; `undefined` ends that. */
  failWith(trouble: Error | string | undefined): void {
    this.#trouble = typeof trouble === 'string' ? new Error(trouble) : trouble;
  }

  protected async answer<T>(
    question: Question,
    signal: AbortSignal | undefined,
    find: () => T | Promise<T>,
  ): Promise<T> {
    this.#asked.push(question);
    signal?.throwIfAborted();
    if (this.#trouble !== undefined) throw this.#trouble;
    const found = await find();
    signal?.throwIfAborted();
    return found;
  }
}
