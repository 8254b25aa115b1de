import type { Nested, Operation, Transaction } from '../../store/index.ts';
import { encode, type Letter } from '../layout.ts';

/** Merges the transactions of all resources. Letters to one process become one, because no key may be put twice. */
export function merge(transactions: readonly Transaction[]): Transaction {
  const letters = new Map<string, Nested>();
  const success: Operation[] = [];
  for (const operation of transactions.flatMap((transaction) => transaction.success)) {
    const put = operation.do === 'transaction' ? operation.success[0] : undefined;
    if (operation.do !== 'transaction' || put?.do !== 'put') {
      success.push(operation);
      continue;
    }
    const [before] = letters.get(put.key)?.success ?? [];
    const earlier = before?.do === 'put' ? (before.value.json as Letter) : undefined;
    const letter = put.value.json as Letter;
    const both: Letter = {
      answers: [...(earlier?.answers ?? []), ...letter.answers],
      losses: [...(earlier?.losses ?? []), ...letter.losses],
      reports: [...(earlier?.reports ?? []), ...(letter.reports ?? [])],
    };
    letters.set(put.key, { ...operation, success: [{ ...put, value: encode(both) }] });
  }
  // Each transaction compares that our session is alive; one comparison is enough.
  const compare = new Map(transactions.flatMap((one) => one.compare.map((each) => [JSON.stringify(each), each])));
  return {
    compare: [...compare.values()],
    success: [...success, ...letters.values()],
    failure: [],
  };
}
