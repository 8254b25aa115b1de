/**
 * Compare and swap of refs: each moves from the tip that was expected to a new commit, or none does.
 *
 *     send ──2xx──▶ won
 *      ▲ └──403, 429──▶ wait as GitHub says, if there is time
 *      │ └──anything else──▶ read the refs ──all at the new commit──▶ won
 *      └──── all as expected ◀──────────────┤ └──elsewhere──▶ lost
 *                                           └──no answer──▶ unknown: not held
 *
 * Sending again is harmless: a ref that has moved on refuses the old commit.
 */
import {
  type Answer,
  ask,
  askAll,
  type Instant,
  isPast,
  later,
  pause,
  type Procedure,
  type RefMove,
} from './question.ts';

export interface Swap extends RefMove {
  readonly to: string;
  /** Tips that the ref had before `from`: a read that shows one of them is old. */
  readonly before?: readonly string[];
}

export type Swapped =
  | { readonly kind: 'won'; readonly at: Instant }
  /** Some refs are somewhere else. `tips` has what was read, in the order of the swaps. */
  | { readonly kind: 'lost'; readonly at: Instant; readonly tips: readonly (string | null)[] }
  | { readonly kind: 'unknown'; readonly at: Instant; readonly message: string }
  /** GitHub cannot move several refs at once. Nothing was moved. */
  | { readonly kind: 'unsupported'; readonly at: Instant }
  | { readonly kind: 'denied'; readonly at: Instant; readonly message: string }
  | { readonly kind: 'limited'; readonly at: Instant; readonly waitMs: number; readonly message: string };

const MOST_SENDS = 4;
const REREAD_MS = 250;

/** `giveUp`: no send and no wait goes past it. */
export function* swap(swaps: readonly Swap[], giveUp: Instant): Procedure<Swapped> {
  let unsure: Swapped | undefined;
  for (let sends = 0; sends < MOST_SENDS; sends++) {
    const answer = yield* send(swaps);
    const { at } = answer;
    switch (answer.kind) {
      case 'ok':
        return { kind: 'won', at };
      case 'denied':
        // An earlier send that was not answered may have landed all the same.
        return unsure ?? { kind: 'denied', at, message: answer.message };
      case 'limited':
        if (isPast(giveUp, later(at, answer.waitMs)))
          return unsure ?? { kind: 'limited', at, waitMs: answer.waitMs, message: answer.message };
        yield* pause(answer.waitMs);
        continue;
      case 'missing':
      case 'refused':
      case 'unknown':
        break;
    }
    if (swaps.length > 1 && answer.kind === 'missing') return { kind: 'unsupported', at };
    unsure = { kind: 'unknown', at, message: answer.message };
    const found = yield* look(swaps, giveUp);
    if (found.kind !== 'as-before') return found;
    if (isPast(giveUp, found.at)) return unsure;
  }
  return unsure ?? { kind: 'unknown', at: giveUp, message: 'GitHub kept refusing' };
}

function* send(swaps: readonly Swap[]): Procedure<Answer<null>> {
  const [only, ...more] = swaps;
  // A commit with several parents needs `move-refs`, which names the tip it expects: `move-ref` would accept any ancestor.
  if (only === undefined || more.length > 0)
    return yield* ask({ ask: 'move-refs', moves: swaps.map(({ ref, from, to }) => ({ ref, from, to })) });
  const { ref, from, to: sha } = only;
  return from === null ? yield* ask({ ask: 'make-ref', ref, sha }) : yield* ask({ ask: 'move-ref', ref, sha });
}

type Found = Swapped | { readonly kind: 'as-before'; readonly at: Instant };

/** Where the refs are after an answer that says nothing certain. */
function* look(swaps: readonly Swap[], giveUp: Instant): Procedure<Found> {
  for (let reads = 0; ; reads++) {
    const answers = yield* askAll(swaps.map(({ ref }) => ({ ask: 'ref' as const, ref })));
    const at = (answers.at(-1) as Answer<unknown>).at;
    const silent = answers.find((answer) => answer.kind !== 'ok' && answer.kind !== 'missing');
    const tips = answers.map((answer) => (answer.kind === 'ok' ? answer.value.sha : null));
    const all = (test: (one: Swap, tip: string | null) => boolean): boolean =>
      swaps.every((one, place) => test(one, tips[place] ?? null));
    if (silent === undefined) {
      if (all(({ to }, tip) => tip === to)) return { kind: 'won', at };
      if (all(({ from }, tip) => tip === from)) return { kind: 'as-before', at };
      // One ref that another worker has moved decides: they move together or not at all.
      if (!all(isExpected)) return { kind: 'lost', at, tips };
    }
    const waitMs = silent?.kind === 'limited' ? silent.waitMs : REREAD_MS;
    const message = silent === undefined ? 'the refs were read from an old copy' : silent.message;
    if (reads === MOST_SENDS || isPast(giveUp, later(at, waitMs))) return { kind: 'unknown', at, message };
    yield* pause(waitMs);
  }
}

/** The new tip, the old one, or one from an old copy. */
function isExpected({ from, to, before = [] }: Swap, tip: string | null): boolean {
  return tip === to || tip === from || tip === null || before.includes(tip);
}
