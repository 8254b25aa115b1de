/** Reads the output of `git worktree list --porcelain`. The first worktree is the main one. */
import { given } from '../core/given.ts';

export interface Worktree {
  readonly path: string;
  /** The full ref; undefined if no branch is checked out. */
  readonly branch?: string;
  /** The commit that is checked out; undefined if there is none. */
  readonly head?: string;
  readonly isBare: boolean;
  /** Whether git keeps the worktree although its directory may be out of reach for a while. */
  readonly isLocked: boolean;
}

/** `separator` ends each attribute; an empty attribute ends each worktree. */
export function parseWorktrees(text: string, separator: '\0' | '\n'): readonly Worktree[] {
  return text
    .split(separator + separator)
    .map((entry) => entry.split(separator).map(attributeOf))
    .flatMap((attributes) => {
      const values = new Map(attributes);
      const path = values.get('worktree');
      if (path === undefined) return [];
      const checkedOut = given({ branch: values.get('branch'), head: values.get('HEAD') });
      return [{ path, ...checkedOut, isBare: values.has('bare'), isLocked: values.has('locked') }];
    });
}

function attributeOf(line: string): readonly [string, string] {
  const space = line.indexOf(' ');
  return space < 0 ? [line, ''] : [line.slice(0, space), line.slice(space + 1)];
}
