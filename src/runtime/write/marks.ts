/**
 * Marks: ids in the record's document of commands that leave nothing else there (`resize`, `configure`, `break`). If such a
 * command gets no answer, its mark shows whether it landed.
 */

/** How many marks a record keeps: enough for as many answers as may be lost at once. */
export const MOST_MARKS = 8;

/** Every write keeps the marks that it found, so that a mark is still there after other processes have written. */
export function marksAfter(before: readonly string[], more: readonly string[]): readonly string[] {
  return more.length === 0 ? before : [...before, ...more].slice(-MOST_MARKS);
}
