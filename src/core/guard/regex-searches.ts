/** Lists the regular expressions of a condition and the texts they search: the runtime first runs each with a time limit. */
import { type Condition, leavesOf } from './condition.ts';
import { readFilePattern } from './file-pattern.ts';
import type { InputKey } from './inputs.ts';
import { inputOf } from './required-inputs.ts';

export interface RegexSearch {
  /** The key of the text that is searched. */
  readonly key: InputKey<'fileText'>;
  readonly path: string;
  readonly pattern: string;
  readonly regex: RegExp;
}

export function regexSearches(condition: Condition): readonly RegexSearch[] {
  return leavesOf(condition).flatMap((leaf) => {
    if (!('fileContains' in leaf)) return [];
    const { path, pattern } = leaf.fileContains;
    const wanted = readFilePattern(pattern);
    if (wanted.kind !== 'regex') return [];
    return [{ key: inputOf(leaf).key as InputKey<'fileText'>, path, pattern, regex: wanted.regex }];
  });
}
