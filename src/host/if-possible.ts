/** Returns undefined if `work` throws: for system calls whose failure is itself an answer. */
export function ifPossible<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
