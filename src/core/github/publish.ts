/**
 * Fenced publish: moves a branch together with the lock's ref, so that it moves only while the lock is held. A worker that
 * was stopped, and wakes up after another worker took its lock, publishes nothing.
 *
 *     read the branch ──at the new commit──▶ published already
 *          │  └──elsewhere──▶ refused
 *          └──as expected──▶ heartbeat, with the branch's move beside those of the lock
 */
import { shown } from '../shown.ts';
import type { Held } from './acquire.ts';
import { ask, type Procedure } from './question.ts';
import { renew, type Renewed, type RenewSettings } from './renew.ts';

/** The move of a branch. `from` is null for a branch that must not exist yet. */
export interface BranchMove {
  /** Its whole name: `refs/heads/main`. */
  readonly ref: string;
  /** The commit it is expected at. */
  readonly from: string | null;
  /** The commit it moves to, which GitHub must know already. */
  readonly to: string;
}

export type Published =
  | { readonly kind: 'published' }
  /** The branch is at another commit than was expected; null if there is no such branch. */
  | { readonly kind: 'moved'; readonly at: string | null }
  | { readonly kind: 'lost' }
  /** This GitHub has no GraphQL, and cannot move two refs at once. */
  | { readonly kind: 'unsupported' }
  /** The token may not move the branch, or GitHub does not know the commit. */
  | { readonly kind: 'refused'; readonly message: string }
  /** It may have moved: ask again, which is harmless. */
  | { readonly kind: 'unknown'; readonly message: string };

const BRANCH = /^refs\/heads\/[^\s~^:?*[\\]{1,200}$/;
const COMMIT = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;

/** What is wrong with the move of a branch; undefined if nothing is. */
export function branchProblem({ ref, from, to }: BranchMove): string | undefined {
  if (typeof ref !== 'string' || !BRANCH.test(ref)) return `the branch is ${shown(ref)}; expected refs/heads/NAME`;
  for (const [name, sha] of Object.entries({ from, to })) {
    if (sha === null && name === 'from') continue;
    if (typeof sha !== 'string' || !COMMIT.test(sha)) {
      return `${name} is ${shown(sha)}; expected the whole name of a commit, 40 or 64 hexadecimal digits`;
    }
  }
  return undefined;
}

/** Answers what became of the branch, and what the heartbeat did to the hold, if there was one. */
export function* publish(
  held: Held,
  branch: BranchMove,
  settings: Omit<RenewSettings, 'together' | 'along'>,
): Procedure<{ readonly published: Published; readonly renewed?: Renewed }> {
  const seen = yield* ask({ ask: 'ref', ref: branch.ref });
  if (seen.kind !== 'ok' && seen.kind !== 'missing') {
    return { published: { kind: seen.kind === 'denied' ? 'refused' : 'unknown', message: seen.message } };
  }
  const at = seen.kind === 'ok' ? seen.value.sha : null;
  if (at === branch.to) return { published: { kind: 'published' } };
  if (at !== branch.from) return { published: { kind: 'moved', at } };
  const [renewed] = yield* renew([held], { ...settings, together: true, along: branch });
  return renewed === undefined ? { published: { kind: 'lost' } } : { published: publishedBy(renewed), renewed };
}

function publishedBy(renewed: Renewed): Published {
  switch (renewed.kind) {
    case 'renewed':
      // Without `isAlong`, this heartbeat only found that an earlier one had landed, and left the branch alone.
      return renewed.isAlong === true
        ? { kind: 'published' }
        : { kind: 'unknown', message: 'only the lock was renewed' };
    case 'lost':
      return { kind: renewed.isAlong === true ? 'published' : 'lost' };
    case 'apart':
      return { kind: 'unsupported' };
    case 'unsure': {
      const { message, elsewhere, isDenied } = renewed;
      if (elsewhere !== undefined) return { kind: 'moved', at: elsewhere };
      return { kind: isDenied === true ? 'refused' : 'unknown', message };
    }
  }
}
