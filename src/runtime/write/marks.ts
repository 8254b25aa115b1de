/**
 * Marks: commands that leave nothing in the state to know them by (`resize`, `configure`, `break`) are known by an id in the
 * record's document, should their answer get lost.
 */

/** So many are carried along: enough for as many answers as may be lost at once. */
export const MOST_MARKS = 8;

/** Every write carries on what it found, so that a mark is there although others have written since. */
export function marksAfter(before: readonly string[], more: readonly string[]): readonly string[] {
  return more.length === 0 ? before : [...before, ...more].slice(-MOST_MARKS);
}
