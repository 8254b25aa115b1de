/** Evaluates a comparison for one key; `pair` is undefined if the key does not exist. */
import type { Compare, KeyValue } from './contract.ts';

export function holds(compare: Compare, pair: KeyValue | undefined): boolean {
  switch (compare.target) {
    case 'version':
      return holdsOfNumber(compare.is, pair === undefined ? 0 : pair.version, compare.than);
    case 'create':
      return holdsOfNumber(compare.is, pair === undefined ? 0 : pair.createRevision, compare.than);
    case 'mod':
      return holdsOfNumber(compare.is, pair === undefined ? 0 : pair.modRevision, compare.than);
    case 'lease':
      return (compare.is === '=') === ((pair === undefined ? null : pair.lease) === compare.than);
    case 'value':
      // A missing key is neither equal nor unequal: it must not pass for a key with another value.
      return pair !== undefined && (compare.is === '=') === (pair.value.text === compare.than);
  }
}

function holdsOfNumber(is: '=' | '!=' | '<' | '>', actual: number, than: number): boolean {
  switch (is) {
    case '=':
      return actual === than;
    case '!=':
      return actual !== than;
    case '<':
      return actual < than;
    case '>':
      return actual > than;
  }
}
