/** What `work` returns; undefined if it throws: for questions to the system to which no answer is an answer too. */
export function ifPossible<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
