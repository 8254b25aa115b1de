/**
 * Operations whose results are looked up by name. `read` returns the place where its result will be, so no caller
 * counts positions, and adding an operation moves no result of another.
 *
 *     const look = new Operations();
 *     const record = look.read({ key: 'r/lock/main' });
 *     const { results } = await store.transaction(look.always());
 *     record.in(results).pairs
 */
import type {
  KeyRange,
  KeyValue,
  Operation,
  OperationResult,
  Read,
  ReadResult,
  Revision,
  Store,
  Transaction,
} from './contract.ts';

/** What to read. */
export type ReadRange = Omit<Read, 'do'>;
/** What a transaction inside a transaction answers. */
export type NestedResult = Extract<OperationResult, { readonly do: 'transaction' }>;

/** Where one operation's result is among the results of its transaction. */
export interface Place<Result extends OperationResult> {
  /** The result of this operation. */
  in(results: readonly OperationResult[]): Result;
}

/** Collects the operations of a transaction, and finds their results. */
export class Operations {
  /** What was collected. */
  readonly list: Operation[] = [];

  /** Adds operations whose results are not needed. */
  add(...operations: readonly Operation[]): this {
    this.list.push(...operations);
    return this;
  }

  /** Adds a read, and returns the place of its result. */
  read(range: ReadRange): Place<ReadResult> {
    const place = this.list.push({ do: 'read', ...range }) - 1;
    return { in: (results) => results[place] as ReadResult };
  }

  /** A nested transaction: its result says whether its own comparisons held. */
  nest(transaction: Transaction): Place<NestedResult> {
    const place = this.list.push({ do: 'transaction', ...transaction }) - 1;
    return { in: (results) => results[place] as NestedResult };
  }

  /** Returns a transaction that compares nothing. */
  always(): Transaction {
    return always(this.list);
  }
}

/** The pair of this key among all pairs that a transaction read; undefined if there is no such key. */
export function pairIn(results: readonly OperationResult[], key: string): KeyValue | undefined {
  for (const result of results) {
    const pair = result.do === 'read' ? result.pairs.find((one) => one.key === key) : undefined;
    if (pair !== undefined) return pair;
  }
  return undefined;
}

/** A transaction that compares nothing, so it always succeeds. */
export function always(success: readonly Operation[]): Transaction {
  return { compare: [], success, failure: [] };
}

/** A transaction that does this only if the key is as it was at `mod`; 0 stands for a key that does not exist. */
export function ifUnchanged(key: string, mod: Revision, success: readonly Operation[]): Transaction {
  return { compare: [{ key, target: 'mod', is: '=', than: mod }], success, failure: [] };
}

/** Reads one key or range. */
export async function readRange(
  store: Pick<Store, 'transaction'>,
  range: ReadRange,
  signal?: AbortSignal,
): Promise<ReadResult & { readonly revision: Revision }> {
  const { results, revision } = await store.transaction(always([{ do: 'read', ...range }]), signal);
  return { ...(results[0] as ReadResult), revision };
}

/**
 * Reads a range page by page, in order of its keys. Each page is of a later revision than the one before, so a reader that
 * needs one revision for all of them follows the changes since the first. `limitOf` sets the size of the next page.
 */
export async function* readPages(
  store: Pick<Store, 'transaction'>,
  range: KeyRange,
  limitOf: number | ((page: ReadResult | undefined) => number),
  signal?: AbortSignal,
): AsyncGenerator<ReadResult & { readonly revision: Revision }, void> {
  let { key } = range;
  let page: (ReadResult & { readonly revision: Revision }) | undefined;
  do {
    const limit = typeof limitOf === 'number' ? limitOf : limitOf(page);
    page = await readRange(store, { key, end: range.end, limit }, signal);
    yield page;
    key = `${page.pairs.at(-1)?.key ?? ''}\0`;
  } while (page.more && page.pairs.length > 0);
}

/** About this many characters of values make a page: a longer one would block the event loop. */
const PAGE_CHARACTERS = 512 * 1024;

/**
 * Page sizes for `readPages`: `first` keys, then as many as make a full page if their values are about as long as those of the
 * page before, but at most `most`.
 */
export function fullPages(first: number, most: number): (page: ReadResult | undefined) => number {
  return (page) => {
    if (page === undefined) return first;
    const { pairs } = page;
    const characters = pairs.reduce((sum, { value }) => sum + value.text.length, 0) / Math.max(1, pairs.length);
    return Math.max(1, Math.min(most, Math.floor(PAGE_CHARACTERS / Math.max(1, characters))));
  };
}
