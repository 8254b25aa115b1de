/** The steps from which promises are written. */
import assert from 'node:assert/strict';
import { Failure, type FailureCode } from '../../failure.ts';
import type {
  Change,
  Changes,
  Compare,
  KeyRange,
  KeyValue,
  LeaseId,
  Operation,
  Put,
  Read,
  ReadResult,
  Revision,
  Store,
  TransactionResult,
  Watch,
} from '../../store/contract.ts';
import { NO_END } from '../../store/key-order.ts';
import { Value } from '../../store/value.ts';
import type { ContractSubject } from './subject.ts';

/** Every key there is. */
export const EVERYTHING: KeyRange = { key: NO_END, end: NO_END };

export function put(key: string, text = 'x', lease?: LeaseId | 'keep'): Put {
  return { do: 'put', key, value: Value.text(text), lease };
}

export function remove(key: string, end?: string): Operation {
  return { do: 'delete', key, end };
}

export function read(range: KeyRange | string, options: Omit<Read, 'do' | 'key' | 'end'> = {}): Read {
  return { do: 'read', ...(typeof range === 'string' ? { key: range } : range), ...options };
}

export function nested(
  compare: readonly Compare[],
  success: readonly Operation[],
  failure: readonly Operation[] = [],
): Operation {
  return { do: 'transaction', compare, success, failure };
}

export function exists(key: string): Compare {
  return { key, target: 'version', is: '>', than: 0 };
}

export function isMissing(key: string): Compare {
  return { key, target: 'version', is: '=', than: 0 };
}

/** Applies these operations unconditionally. */
export function apply(store: Store, ...operations: readonly Operation[]): Promise<TransactionResult> {
  return store.transaction({ compare: [], success: operations, failure: [] });
}

export function choose(
  store: Store,
  compare: readonly Compare[],
  success: readonly Operation[],
  failure: readonly Operation[] = [],
): Promise<TransactionResult> {
  return store.transaction({ compare, success, failure });
}

/** Whether all these comparisons hold now. */
export async function holds(store: Store, ...compare: readonly Compare[]): Promise<boolean> {
  return (await choose(store, compare, [])).succeeded;
}

export async function list(
  store: Store,
  range: KeyRange | string = EVERYTHING,
  options: Omit<Read, 'do' | 'key' | 'end'> = {},
): Promise<ReadResult> {
  const { results } = await apply(store, read(range, options));
  return results[0] as ReadResult;
}

export async function get(store: Store, key: string): Promise<KeyValue | undefined> {
  return (await list(store, key)).pairs[0];
}

export async function keys(
  store: Store,
  range?: KeyRange,
  options?: Omit<Read, 'do' | 'key' | 'end'>,
): Promise<string[]> {
  return (await list(store, range, options)).pairs.map((pair) => pair.key);
}

export async function revisionOf(store: Store): Promise<Revision> {
  return (await store.health()).revision;
}

export async function refuses(code: FailureCode, call: () => Promise<unknown>): Promise<void> {
  const thrown = await call().then(
    () => assert.fail(`expected to be refused with ${code}`),
    (error: unknown) => error,
  );
  if (!(thrown instanceof Failure)) throw thrown;
  assert.equal(thrown.code, code, `expected ${code}, got ${thrown.code}: ${thrown.message}`);
}

/** A change in one line, so that a failing assertion can be read. */
export function told(change: Change): string {
  return change.kind === 'put' ? `put ${change.pair.key}=${change.pair.value.text}` : `delete ${change.key}`;
}

/** A watch with a deadline for each read, so that a missing change fails the test instead of hanging it. */
export class Reader {
  readonly watch: Watch;
  readonly #iterator: AsyncIterator<Changes>;
  readonly #subject: ContractSubject;
  readonly #abort: AbortController;

  constructor(watch: Watch, subject: ContractSubject, abort: AbortController) {
    this.watch = watch;
    this.#iterator = watch[Symbol.asyncIterator]();
    this.#subject = subject;
    this.#abort = abort;
  }

  static async open(
    subject: ContractSubject,
    range: KeyRange,
    since: Revision | 'now',
    store: Store = subject.store,
  ): Promise<Reader> {
    const abort = new AbortController();
    return new Reader(await store.watch(range, since, abort.signal), subject, abort);
  }

  async next(): Promise<Changes> {
    const step = await soon(this.#subject, this.#iterator.next(), 'nothing was delivered');
    if (step.done) assert.fail('the watch ended where a change was expected');
    return step.value;
  }

  /** The next `count` changes, one line each; the changes of one revision must come together. */
  async tell(count: number): Promise<string[]> {
    const lines: string[] = [];
    while (lines.length < count) lines.push(...(await this.next()).changes.map(told));
    return lines;
  }

  /** Asserts that the watch ends without an error. */
  async end(): Promise<void> {
    const step = await soon(this.#subject, this.#iterator.next(), 'the watch did not end');
    assert.equal(step.done, true, 'something was delivered where the watch was expected to end');
  }

  /** The error of the next reads; undefined once something is delivered. */
  async failure(): Promise<Failure | undefined> {
    try {
      await this.next();
      return undefined;
    } catch (error) {
      if (error instanceof Failure) return error;
      throw error;
    }
  }

  abort(): void {
    this.#abort.abort();
  }
}

/** Far more than any store needs; used up only when something is wrong or a lease has to end. */
const PATIENCE_MS = 20_000;

/** Waits while time passes, up to a limit. */
export async function soon<T>(subject: ContractSubject, expected: Promise<T>, otherwise: string): Promise<T> {
  let settled = false;
  const noted = expected.finally(() => {
    settled = true;
  });
  noted.catch(() => {});
  // Usually it has settled already, and no time needs to pass.
  await new Promise((resolve) => setImmediate(resolve));
  for (let waitedMs = 0, stepMs = 1; !settled; waitedMs += stepMs, stepMs = Math.min(2 * stepMs, 200)) {
    if (waitedMs > PATIENCE_MS) assert.fail(`${otherwise} in ${PATIENCE_MS} ms`);
    await subject.advance(stepMs);
  }
  return noted;
}

/** Lets time pass until the condition holds. */
export async function eventually(
  subject: ContractSubject,
  isSo: () => Promise<boolean>,
  otherwise: string,
): Promise<void> {
  for (let waitedMs = 0; !(await isSo()); waitedMs += 100) {
    if (waitedMs > PATIENCE_MS) assert.fail(`${otherwise} in ${PATIENCE_MS} ms`);
    await subject.advance(100);
  }
}
