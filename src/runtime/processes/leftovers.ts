/**
 * Ends the children that earlier holders of our resources left behind, because their parent was killed, stopped or too
 * slow. They have had the time of the lease. Our child begins when they are gone.
 */
import {
  areOfTwoBoots,
  type Bar,
  barTo,
  end,
  isGone,
  isGoneWithin,
  isProvenGone,
  type Remains,
  remainsOf,
  signalRemains,
  thisHost,
  userShown,
} from '../../host/index.ts';
import type { ChildNote } from '../child-note.ts';
import type { Children, Found, Leftover } from './children.ts';
import { spoken } from '../../core/index.ts';

/** The time that a live parent needs beyond the grace of its child. */
const PARENT_MS = 2_000;
/** The wait for a process that cannot be ended from here. */
const UNENDABLE_MS = 15_000;
/** The time after which a note is useless if this machine cannot see whether the process lives. */
const OUT_OF_SIGHT_MS = 86_400_000;

export interface Clearing {
  readonly children: Children;
  readonly graceMs: number;
  /** The wait for a process that cannot be ended from here. */
  readonly unendableMs?: number;
  readonly tell: (line: string) => void;
  /** When it aborts, our own command will not begin, so the leftovers need not be gone. */
  readonly cut: AbortSignal;
}

const NOTHING: Cleared = { over: [] };

interface Cleared {
  /** The children whose notes are useless now. */
  readonly over: readonly Leftover[];
  /** The processes that may still run. */
  readonly left?: string;
}

/** Resolves when no leftover can run any more; after an abort or a time-out, with the ones that still may. */
export async function clearLeftovers(found: Found, clearing: Clearing): Promise<readonly string[]> {
  for (const { resource, key } of found.unreadable)
    clearing.tell(
      `${resource}: the note of a child process at ${key} is not in a form that signalbox writes, so it is ignored`,
    );
  // One child may have worked under several resources.
  const byChild = new Map<string, Leftover[]>();
  for (const leftover of found.leftovers) {
    const { mark } = leftover.note.child;
    byChild.set(mark, [...(byChild.get(mark) ?? []), leftover]);
  }
  const cleared = await Promise.all([...byChild.values()].map((some) => clearOne(some, clearing)));
  await clearing.children.forget(cleared.flatMap(({ over }) => over).map(({ key }) => key));
  return cleared.flatMap(({ left }) => left ?? []);
}

async function clearOne(leftovers: readonly Leftover[], clearing: Clearing): Promise<Cleared> {
  const [leftover] = leftovers;
  const over = { over: leftovers };
  if (leftover === undefined) return over;
  const { note } = leftover;
  const resources = leftovers.map(({ resource }) => resource).join(', ');
  const remains = remainsOf(note.child);
  if (isGone(remains)) return over;
  if (remains.kind === 'out-of-sight')
    return isForgettable(note, clearing) ? over : outOfSight(resources, note, clearing);
  if (note.outlivesHold && note.parent !== undefined && !isProvenGone(note.parent)) {
    clearing.tell(
      `${resources}: ${processes(remains)} of ${note.holder} keeps running next to this one, as --on-lost warn allows`,
    );
    return NOTHING;
  }
  if (barOf(note, remains, clearing)?.kind === 'inside') {
    clearing.tell(`${resources}: this process is itself part of what ${note.holder} left behind, so that is not ended`);
    return NOTHING;
  }
  const left = `${resources}: waiting for ${processes(remains)}, left behind by ${note.holder}`;
  if (leftover.isLookedAfter) {
    clearing.tell(`${resources}: waiting until ${note.holder} has ended ${processes(remains)}`);
    if (await isGoneWithin(note.child, false, note.graceMs + PARENT_MS, clearing.cut)) return over;
    if (clearing.cut.aborted) return { over: [], left };
  }
  return (await endIt(resources, note, clearing)) ? over : { over: [], left };
}

async function endIt(resources: string, note: ChildNote, clearing: Clearing): Promise<boolean> {
  const remains = remainsOf(note.child);
  const { graceMs, cut, tell } = clearing;
  const isShared = clearing.children.areOfSeveralUsers;
  const unendableMs = clearing.unendableMs ?? UNENDABLE_MS;
  const left = `${processes(remains)}, left behind by ${note.holder}`;
  const bar = barOf(note, remains, clearing);
  if (bar !== undefined || !signalRemains(note.child, remains, 'SIGTERM', { isShared })) {
    tell(`${resources}: waiting for ${left}; ${whyNot(bar)}`);
    return isGoneWithin(note.child, false, unendableMs, cut);
  }
  tell(`${resources}: ending ${left} (TERM, and KILL after ${spoken(graceMs)})`);
  // CONT, because a stopped process would never handle the TERM. A second TERM would hit the clean-up after the first.
  signalRemains(note.child, remainsOf(note.child), 'SIGCONT', { isShared });
  if (await isGoneWithin(note.child, false, graceMs, cut)) return true;
  return end(note.child, { graceMs: 0, isOwn: false, isShared, cut, giveUpMs: unendableMs });
}

function barOf(note: ChildNote, remains: Remains, { children }: Clearing): Bar | undefined {
  if (remains.kind !== 'some') return undefined;
  const bar = barTo(note.child, remains.pids, { isShared: children.areOfSeveralUsers });
  return bar ?? (remains.isCertain ? undefined : { kind: 'unproven' });
}

function whyNot(bar: Bar | undefined): string {
  if (bar?.kind === 'foreign') return `it belongs to ${userShown(bar.uid)}, who has to end it`;
  if (bar?.kind === 'unproven') return 'signalbox cannot prove that it is the same process; if it is, end it by hand';
  return 'it cannot be ended from here, so end it by hand';
}

function outOfSight(resources: string, { holder }: ChildNote, { tell }: Clearing): Cleared {
  tell(
    `${resources}: ${holder} may have left a process on another machine or in another container; it cannot be seen from here`,
  );
  return NOTHING;
}

/** A reboot ends every process; and a process that was invisible for a day stays so. */
function isForgettable({ child, at }: ChildNote, { children }: Clearing): boolean {
  const boot = thisHost()?.boot;
  const hasRebooted =
    children.areOfOneMachine &&
    boot !== undefined &&
    child.process !== undefined &&
    areOfTwoBoots(child.process.boot, boot);
  return hasRebooted || Date.now() - at > OUT_OF_SIGHT_MS;
}

function processes(remains: Remains): string {
  if (remains.kind !== 'some' || remains.pids.length === 0) return 'a process';
  const some = remains.pids.slice(0, 5).join(', ');
  return remains.pids.length === 1
    ? `process ${some}`
    : `processes ${some}${remains.pids.length > 5 ? ' and more' : ''}`;
}
