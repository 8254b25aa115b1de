/**
 * The promises of every engine, as tests that any engine can run:
 *
 *     import { describe, it } from 'vitest';
 *     storeContract('my engine', openMyEngine, { describe, it });
 *
 * Each promise gets a fresh store. The suite works with any test runner: it throws errors of `node:assert`.
 */
import { comparisonPromises } from './store-contract/comparisons.ts';
import { handlePromises } from './store-contract/handles.ts';
import { historyPromises } from './store-contract/history.ts';
import { leasePromises } from './store-contract/leases.ts';
import { nestingPromises } from './store-contract/nesting.ts';
import { readPromises } from './store-contract/reads.ts';
import type { ContractSubject, StorePromise } from './store-contract/subject.ts';
import { transactionPromises } from './store-contract/transactions.ts';
import { validityPromises } from './store-contract/validity.ts';
import { watchPromises } from './store-contract/watches.ts';

export type { ContractSubject, StorePromise } from './store-contract/subject.ts';

/** All promises of the store contract. */
export const storePromises: readonly StorePromise[] = [
  ...transactionPromises,
  ...nestingPromises,
  ...validityPromises,
  ...comparisonPromises,
  ...readPromises,
  ...watchPromises,
  ...leasePromises,
  ...historyPromises,
  ...handlePromises,
];

/** The two words that vitest, jest and node:test have in common. */
export interface TestRunner {
  /** Groups tests. */
  describe(name: string, define: () => void): unknown;
  /** One test. */
  it(name: string, run: () => Promise<void>): unknown;
}

/** Tests every promise of the store contract. */
export function storeContract(name: string, open: () => Promise<ContractSubject>, { describe, it }: TestRunner): void {
  describe(`the store contract, kept by ${name}`, () => {
    for (const each of storePromises) it(each.name, () => keepsPromise(each, open));
  });
}

/** Checks one promise of a store; throws if it is broken. */
export async function keepsPromise(promise: StorePromise, open: () => Promise<ContractSubject>): Promise<void> {
  const subject = await open();
  try {
    await promise.run(subject);
  } finally {
    await subject.close();
  }
}
