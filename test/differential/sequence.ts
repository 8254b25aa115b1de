/**
 * Random sequences of commands, as plain data: the same one is played on every engine. Two things cannot be known when a
 * sequence is made, and stand in it by other names: a lease by the order in which it was granted, and a revision by how
 * long ago it was.
 */
import fc from 'fast-check';
import { type Compare, type KeyRange, type Operation, type Transaction, Value } from 'signalbox/store';

export type Command =
  /** In it, a revision to compare with is 0 for none, 1 for the current one, 2 for the one before; see `resolve.ts`. */
  | { readonly do: 'transaction'; readonly transaction: Transaction }
  | { readonly do: 'grant'; readonly seconds: number }
  | { readonly do: 'keep-alive' | 'revoke' | 'lease-state'; readonly lease: string }
  /** `ago` below 0 is still to come. */
  | { readonly do: 'watch'; readonly range: KeyRange; readonly since: 'now' | { readonly ago: number } }
  | { readonly do: 'compact'; readonly ago: number }
  /** Puts a key into the range of every watch and waits until they have delivered it. */
  | { readonly do: 'settle' };

/** In the order of their bytes. By UTF-16, the last would come before the one before it. */
const KEYS = ['a', 'a\0', 'a/', 'a/1', 'a/2', 'a0', 'b', 'é', '\ufffd', '𝄞'] as const;
const TEXTS = ['', 'x', 'y', 'é☃'] as const;
/** The last is never granted in a sequence, however long. */
const LEASES = ['lease 0', 'lease 1', 'lease 2', 'lease never'] as const;

const key = fc.constantFrom(...KEYS);
const lease = fc.constantFrom(...LEASES);
const text = fc.constantFrom(...TEXTS);

const range: fc.Arbitrary<KeyRange> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ key }) },
  { weight: 2, arbitrary: fc.constant({ key: 'a/', end: 'a0' }) },
  // Also those that end before they begin.
  { weight: 2, arbitrary: fc.record({ key, end: key }) },
  { weight: 1, arbitrary: fc.record({ key, end: fc.constant('\0') }) },
);

/** Those that no watch would be opened for are rare: each is only refused. */
const watched = fc.oneof(
  { weight: 9, arbitrary: range.filter((each) => each.end === undefined || each.end === '\0' || each.key < each.end) },
  { weight: 1, arbitrary: range },
);

const number = fc.record({
  target: fc.constantFrom('version', 'create', 'mod'),
  is: fc.constantFrom('=', '!=', '<', '>'),
  than: fc.nat({ max: 4 }),
});
const equality = fc.constantFrom('=', '!=');
const condition = fc.oneof(
  number,
  fc.record({ target: fc.constant('value'), is: equality, than: text }),
  fc.record({ target: fc.constant('lease'), is: equality, than: fc.option(lease) }),
);
const compare = fc.tuple(range, condition).map(([where, what]) => ({ ...where, ...what }) as Compare);

const put = fc
  .record({ key, text, lease: fc.option(fc.oneof(lease, fc.constant('keep')), { nil: undefined }) })
  .map((each): Operation => ({ do: 'put', key: each.key, value: Value.text(each.text), lease: each.lease }));
const remove = range.map((each): Operation => ({ do: 'delete', ...each }));
const read = fc
  .tuple(
    range,
    fc.record(
      {
        limit: fc.integer({ min: 1, max: 4 }),
        order: fc.constantFrom('key' as const, 'create' as const),
        countOnly: fc.boolean(),
      },
      { requiredKeys: [] },
    ),
  )
  .map(([where, how]): Operation => ({ do: 'read', ...where, ...how }));

/** Deeper ones have fewer operations, or most would put a key twice and only be refused. */
function transactions(depth: number): fc.Arbitrary<Transaction> {
  const leaf = fc.oneof(
    { weight: 4, arbitrary: put },
    { weight: 2, arbitrary: remove },
    { weight: 3, arbitrary: read },
  );
  const nested = (): fc.Arbitrary<Operation> =>
    transactions(depth - 1).map((each): Operation => ({ do: 'transaction', ...each }));
  const operation = depth === 0 ? leaf : fc.oneof({ weight: 8, arbitrary: leaf }, { weight: 1, arbitrary: nested() });
  const branch = fc.array(operation, { maxLength: 3 });
  return fc.record({ compare: fc.array(compare, { maxLength: 2 }), success: branch, failure: branch });
}

export const transaction = transactions(2);

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 24, arbitrary: transaction.map((each): Command => ({ do: 'transaction', transaction: each })) },
  { weight: 2, arbitrary: fc.integer({ min: 600, max: 900 }).map((seconds): Command => ({ do: 'grant', seconds })) },
  {
    weight: 3,
    arbitrary: fc
      .record({ do: fc.constantFrom('keep-alive' as const, 'revoke' as const, 'lease-state' as const), lease })
      .map((each): Command => each),
  },
  {
    weight: 2,
    arbitrary: fc
      .record({
        range: watched,
        since: fc.oneof(fc.constant('now' as const), fc.record({ ago: fc.integer({ min: -2, max: 12 }) })),
      })
      .map((each): Command => ({ do: 'watch', ...each })),
  },
  { weight: 1, arbitrary: fc.integer({ min: -1, max: 8 }).map((ago): Command => ({ do: 'compact', ago })) },
  { weight: 1, arbitrary: fc.constant<Command>({ do: 'settle' }) },
);

/** Some keys, each in a revision of its own and in any order: on an empty store most reads and comparisons say little. */
const filling: fc.Arbitrary<Command[]> = fc.shuffledSubarray([...KEYS]).map((keys) =>
  keys.map((each) => ({
    do: 'transaction',
    transaction: { compare: [], success: [{ do: 'put', key: each, value: Value.text('x') }], failure: [] },
  })),
);

/** Leases are there from the start too, so that the puts that want one mostly find it. */
const GRANTS: readonly Command[] = [
  { do: 'grant', seconds: 600 },
  { do: 'grant', seconds: 601 },
];

export function sequences(length: { readonly minLength: number; readonly maxLength: number }): fc.Arbitrary<Command[]> {
  return fc
    .tuple(filling, fc.array(command, { ...length, size: 'max' }))
    .map(([filled, commands]) => [...GRANTS, ...filled, ...commands]);
}
