/**
 * Reads many keys of the store, and skips those that it cannot read. Another program, or a newer signalbox, may have written under
 * our keys: a reader of one key throws `corrupt` (`checked` in `layout.ts`), a reader of many keys names the ones that it skipped.
 */
import { Failure } from '../failure.ts';
import type { KeyValue } from '../store/index.ts';

/** A key that was skipped. */
export interface Malformed {
  /** The key. */
  readonly key: string;
  /** What is wrong with it, in a sentence that names the key. */
  readonly why: string;
}

/** How to list. */
export interface ListOptions {
  /** Called for each key that is skipped because it cannot be read. */
  readonly onMalformed?: ((found: Malformed) => void) | undefined;
}

/** Reads each pair; calls `malformed` for a pair that cannot be read. */
export function readEach<T>(
  pairs: readonly KeyValue[],
  read: (pair: KeyValue) => T,
  malformed?: (found: Malformed) => void,
): readonly T[] {
  return pairs.flatMap((pair) => {
    try {
      return [read(pair)];
    } catch (error) {
      malformed?.(malformedBy(pair.key, error));
      return [];
    }
  });
}

/** The malformed key that the error is about; throws the error if it is about anything else. */
export function malformedBy(key: string, error: unknown): Malformed {
  if (!Failure.is(error, 'corrupt') && !Failure.is(error, 'inconsistent')) throw error;
  return { key, why: error.message };
}
