/** What `git worktree list --porcelain` says. The first is the main worktree. */

export interface Worktree {
  readonly path: string;
  /** The full ref; undefined where none is checked out. */
  readonly branch?: string;
  /** The commit that is checked out; undefined if there is none. */
  readonly head?: string;
  readonly isBare: boolean;
  /** Kept although its directory may be out of reach for a while. */
  readonly isLocked: boolean;
}

/** `separator` ends each attribute; an empty one ends each worktree. */
export function parseWorktrees(text: string, separator: '\0' | '\n'): readonly Worktree[] {
  return text
    .split(separator + separator)
    .map((entry) => entry.split(separator).map(attributeOf))
    .flatMap((attributes) => {
      const values = new Map(attributes);
      const path = values.get('worktree');
      if (path === undefined) return [];
      const [branch, head] = [values.get('branch'), values.get('HEAD')];
      return [
        {
          path,
          ...(branch !== undefined && { branch }),
          ...(head !== undefined && { head }),
          isBare: values.has('bare'),
          isLocked: values.has('locked'),
        },
      ];
    });
}

function attributeOf(line: string): readonly [string, string] {
  const space = line.indexOf(' ');
  return space < 0 ? [line, ''] : [line.slice(0, space), line.slice(space + 1)];
}
