/**
 * Maps our keys to etcd's, which other programs may use too.
 *
 *     ours                            in etcd
 *     a/… r/… q/… (our own zone)      signalbox/a/…     under `prefix`
 *     /K (the plain zone)             K                 under `plainPrefix`, if there is one: for everybody to see
 *
 * Keys keep their order within each zone. A range never spans both zones: keys that lie between them in our order lie
 * elsewhere in etcd's. With the prefix '' every key is itself.
 */
import { Failure, shown } from '../../failure.ts';
import { afterPrefix, type KeyRange } from '../contract.ts';
import { NO_END } from '../key-order.ts';

export interface Keyspace {
  etcdKey(key: string): string;
  /** Where a range begins and ends in etcd. */
  etcdStart(range: KeyRange): string;
  etcdEnd(range: KeyRange): string | undefined;
  /** `undefined` for a key that is in neither zone. */
  ourKey(etcdKey: string): string | undefined;
}

export function keyspace(prefix: string, plainPrefix: string): Keyspace {
  for (const [what, each] of Object.entries({ prefix, 'plain prefix': plainPrefix })) {
    if (!/^[!-~]*$/.test(each))
      throw new Failure('invalid', `the ${what} is ${shown(each)}; expected printable ASCII without spaces`);
  }
  if (prefix === '') {
    if (plainPrefix === '') return EVERY_KEY_ITSELF;
    throw new Failure(
      'invalid',
      `the plain prefix is ${shown(plainPrefix)}, but without a prefix there is no zone for it`,
    );
  }
  if (plainPrefix.startsWith(prefix)) {
    const told = `the plain prefix ${shown(plainPrefix)} lies inside ${shown(prefix)}, where signalbox keeps its own keys`;
    throw new Failure('invalid', told);
  }
  return new Zones(prefix, plainPrefix);
}

const EVERY_KEY_ITSELF: Keyspace = {
  etcdKey: (key) => key,
  etcdStart: (range) => range.key,
  etcdEnd: (range) => range.end,
  ourKey: (key) => key,
};

/** The plain zone is all keys that begin with this; the first key after the zone is `0`. */
const PLAIN = '/';
const AFTER_PLAIN = '0';

class Zones implements Keyspace {
  readonly #prefix: string;
  readonly #afterPrefix: string;
  readonly #plainPrefix: string;
  readonly #afterPlainPrefix: string;

  constructor(prefix: string, plainPrefix: string) {
    this.#prefix = prefix;
    this.#afterPrefix = afterPrefix(prefix);
    this.#plainPrefix = plainPrefix;
    this.#afterPlainPrefix = plainPrefix === '' ? NO_END : afterPrefix(plainPrefix);
  }

  etcdKey(key: string): string {
    if (!key.startsWith(PLAIN)) return this.#prefix + key;
    const plain = this.#plainPrefix + key.slice(1);
    if (plain === '') throw new Failure('invalid', `the key ${shown(key)} has no name in etcd; expected / and a name`);
    if (plain.startsWith(this.#prefix)) throw this.#reachesIn(`the key ${shown(key)}`);
    return plain;
  }

  etcdStart(range: KeyRange): string {
    if (range.end === undefined) return this.etcdKey(range.key);
    if (!range.key.startsWith(PLAIN)) return this.#prefix + range.key;
    // The first possible key of etcd, instead of the empty key, which does not exist.
    return this.#plainPrefix + range.key.slice(1) || NO_END;
  }

  etcdEnd(range: KeyRange): string | undefined {
    const { key, end } = range;
    if (end === undefined) return undefined;
    return key.startsWith(PLAIN) ? this.#plainEnd(range, end) : this.#ownEnd(key, end);
  }

  #ownEnd(key: string, end: string): string {
    // For these two, `<` agrees with the order of bytes: one side is always ASCII.
    if (key < PLAIN && (end === NO_END || end > PLAIN)) throw spans(key, end);
    return end === NO_END ? this.#afterPrefix : this.#prefix + end;
  }

  #plainEnd(range: KeyRange, end: string): string {
    if (end === NO_END || end > AFTER_PLAIN) throw spans(range.key, end);
    const start = this.etcdStart(range);
    // The range ends before it begins, so it is empty; it must not become a range without end.
    if (end <= PLAIN) return start;
    const plainEnd = end === AFTER_PLAIN ? this.#afterPlainPrefix : this.#plainPrefix + end.slice(1);
    const isBeyond = plainEnd === NO_END || plainEnd > this.#prefix;
    if (start < this.#afterPrefix && isBeyond)
      throw this.#reachesIn(`the range from ${shown(range.key)} to ${shown(end)}`);
    return plainEnd;
  }

  ourKey(etcdKey: string): string | undefined {
    if (etcdKey.startsWith(this.#prefix)) return etcdKey.slice(this.#prefix.length);
    if (!etcdKey.startsWith(this.#plainPrefix)) return undefined;
    return PLAIN + etcdKey.slice(this.#plainPrefix.length);
  }

  #reachesIn(what: string): Failure {
    const told = `${what} would reach into ${shown(this.#prefix)}, where signalbox keeps its own keys in etcd`;
    return new Failure('invalid', told);
  }
}

function spans(key: string, end: string): Failure {
  const told = `the range from ${shown(key)} to ${shown(end)} spans signalbox's own keys and those that begin with /`;
  return new Failure('invalid', `${told}; in etcd these lie apart: read each by itself`);
}
