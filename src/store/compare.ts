/** Evaluates a comparison for one key; `pair` is undefined if the key does not exist. */
import type { Compare, KeyValue } from './contract.ts';

export function holds(compare: Compare, pair: KeyValue | undefined): boolean {
  let actual: number;
  switch (compare.target) {
    case 'version':
      actual = pair === undefined ? 0 : pair.version;
      break;
    case 'create':
      actual = pair === undefined ? 0 : pair.createRevision;
      break;
    case 'mod':
      actual = pair === undefined ? 0 : pair.modRevision;
      break;
    case 'lease':
      return (compare.is === '=') === ((pair === undefined ? null : pair.lease) === compare.than);
    case 'value':
      // A missing key is neither equal nor unequal: it must not pass for a key with another value.
      return pair !== undefined && (compare.is === '=') === (pair.value.text === compare.than);
  }
  switch (compare.is) {
    case '=':
      return actual === compare.than;
    case '!=':
      return actual !== compare.than;
    case '<':
      return actual < compare.than;
    case '>':
      return actual > compare.than;
  }
}
