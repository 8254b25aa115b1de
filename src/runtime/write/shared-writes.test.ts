import { expect, it } from 'vitest';
import { systemClock } from '../../clock.ts';
import { Failure } from '../../failure.ts';
import type { Transaction, TransactionResult } from '../../store/index.ts';
import { encode } from '../layout.ts';
import { SharedWrites } from './shared-writes.ts';

/** Puts a key that is not there yet. */
const putting = (key: string, letters = 1, letter = 'x'): Transaction => ({
  compare: [{ key, target: 'version', is: '=', than: 0 }],
  success: [{ do: 'put', key, value: encode(letter.repeat(letters)) }],
  failure: [{ do: 'read', key }],
});

/** A store that only knows which keys there are; `sent` is what it was asked, each as the keys of one transaction. */
function storeWith(known: readonly string[], failure?: Failure): { sent: string[]; shared: SharedWrites } {
  const there = new Set(known);
  const sent: string[] = [];
  let failures = failure === undefined ? 0 : 1;
  const commit = (
    { compare, success }: Transaction,
    done: (result: TransactionResult) => void,
    failed: (error: unknown) => void,
  ): void => {
    sent.push(compare.map(({ key }) => key).join(' '));
    if (failures-- > 0) return failed(failure);
    const succeeded = compare.every(({ key }) => !there.has(key));
    if (succeeded) for (const one of success) if (one.do === 'put') there.add(one.key);
    done({ succeeded, revision: sent.length, results: [] });
  };
  return { sent, shared: new SharedWrites({ clock: systemClock, commit }) };
}

const kept = (results: readonly TransactionResult[]): readonly boolean[] => results.map(({ succeeded }) => succeeded);

it('transactions of one turn are sent as one', async () => {
  const { sent, shared } = storeWith([]);
  expect(kept(await Promise.all(['a', 'b', 'c'].map((key) => shared.send(putting(key)))))).toEqual([true, true, true]);
  await shared.send(putting('d'));
  expect(sent).toEqual(['a b c', 'd']);
});

it('if the comparison of one fails, each gets an answer of its own', async () => {
  const { sent, shared } = storeWith(['b']);
  expect(kept(await Promise.all(['a', 'b', 'c'].map((key) => shared.send(putting(key)))))).toEqual([true, false, true]);
  expect(sent).toEqual(['a b c', 'a', 'b', 'c']);
});

it('of two for the same key in one turn, one succeeds', async () => {
  const { sent, shared } = storeWith([]);
  expect(kept(await Promise.all(['a', 'b', 'a'].map((key) => shared.send(putting(key)))))).toEqual([true, true, false]);
  expect(sent).toEqual(['a b', 'a']);
});

it('a transaction is no larger than stores take', async () => {
  const { sent, shared } = storeWith([]);
  await Promise.all(Array.from({ length: 70 }, (_, n) => shared.send(putting(`k${n}`))));
  expect(sent.map((keys) => keys.split(' ').length)).toEqual([32, 32, 6]);
  await Promise.all(['x', 'y', 'z'].map((key) => shared.send(putting(key, 100_000))));
  expect(sent.slice(3)).toEqual(['x y', 'z']);
  await Promise.all(['u', 'v'].map((key) => shared.send(putting(key, 70_000, 'ü'))));
  expect(sent.slice(5)).toEqual(['u', 'v']);
});

it('what a store refuses concerns one of them; that it is away concerns all', async () => {
  for (const code of ['not-found', 'invalid'] as const) {
    const refusing = storeWith([], new Failure(code, 'there is no such lease, or it is too large'));
    expect(kept(await Promise.all(['a', 'b'].map((key) => refusing.shared.send(putting(key)))))).toEqual([true, true]);
    expect(refusing.sent).toEqual(['a b', 'a', 'b']);
  }
  const away = storeWith([], new Failure('outcome-unknown', 'no answer'));
  const tried = await Promise.allSettled(['a', 'b'].map((key) => away.shared.send(putting(key))));
  expect(tried.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(away.sent).toEqual(['a b']);
});
