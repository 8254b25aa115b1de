/** The note of a child process that works under a hold: see `processes/children.ts`. */
import type { Token } from '../core/index.ts';
import { identityFrom, type Offspring, offspringFrom, type ProcessIdentity } from '../host/index.ts';
import type { KeyValue } from '../store/index.ts';
import { decode } from './layout.ts';

export interface ChildNote {
  readonly hold: string;
  readonly token: Token;
  readonly holder: string;
  /** The lease of the hold that the child works under: with a re-entry, of the outer hold. */
  readonly lease: string;
  readonly child: Offspring;
  /** The process that started the child and waits for it. */
  readonly parent?: ProcessIdentity;
  /** The time that the parent gives it to end when the hold is lost. */
  readonly graceMs: number;
  /** The parent lets it go on when the hold is lost. */
  readonly outlivesHold: boolean;
  readonly at: number;
}

const LONGEST_TEXT = 1_000;
/** Almost 25 days: Node ends a longer timer at once. */
const LONGEST_GRACE_MS = 2 ** 31 - 1;

/** Reads a note. Undefined for what signalbox would not write: anyone who can write to the store may have written it. */
export function noteIn(pair: KeyValue): ChildNote | undefined {
  let note: Partial<Record<keyof ChildNote, unknown>>;
  try {
    note = decode<Partial<Record<keyof ChildNote, unknown>> | null>(pair) ?? {};
  } catch {
    return undefined;
  }
  const { hold, token, holder, lease, child, parent, graceMs, outlivesHold, at } = note;
  const isSound =
    [hold, holder, lease].every((text) => typeof text === 'string' && text.length <= LONGEST_TEXT) &&
    [token, graceMs, at].every((number) => typeof number === 'number' && Number.isFinite(number) && number >= 0) &&
    (graceMs as number) <= LONGEST_GRACE_MS &&
    typeof outlivesHold === 'boolean' &&
    offspringFrom(child) !== undefined &&
    (parent === undefined || identityFrom(parent) !== undefined);
  return isSound ? (note as ChildNote) : undefined;
}
