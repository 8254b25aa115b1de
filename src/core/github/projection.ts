/** What people see on the issue. Nothing is ever decided by it. */
import type { LockRecord } from './record.ts';

/** Finds the metadata comment of an acquisition whose record does not know its number yet. */
export function markOf(hold: string): string {
  return `<!-- signalbox lock ${hold} -->`;
}

export function metadataComment({ hold, epoch, lock, reason }: LockRecord): string {
  return [
    `🔒 Locked by \`${inCode(lock.worker_id)}\` (token ${epoch}).${reason === undefined ? '' : ` Forced: ${inText(reason)}`}`,
    fenced({ lock }),
    `This comment is for people and may be some minutes old; \`signalbox github status\` reads the lock itself.`,
    markOf(hold),
  ].join('\n\n');
}

export function takenOverComment(old: LockRecord, by: LockRecord): string {
  const how = by.reason === undefined ? 'it had not been renewed in time' : `forced: ${inText(by.reason)}`;
  return [
    `🔓 The lock of \`${inCode(old.lock.worker_id)}\` was taken over by \`${inCode(by.lock.worker_id)}\` (token ${by.epoch}): ${how}.`,
    fenced({ lock: old.lock }),
    markOf(old.hold),
  ].join('\n\n');
}

export interface Completion {
  readonly heldMs: number;
  /** `completed`, `failed`, or any other word. */
  readonly outcome: string;
  readonly ref: string;
}

export function completionComment({ epoch, lock }: LockRecord, { heldMs, outcome, ref }: Completion): string {
  return `🔓 Released by \`${inCode(lock.worker_id)}\` after ${lasted(heldMs)} (token ${epoch}): ${inText(outcome)}. Record: \`${ref}\`.`;
}

/** A backtick would end the block, and GitHub would read the rest as Markdown and notify the people that it mentions. */
function fenced(value: unknown): string {
  return `\`\`\`json\n${JSON.stringify(value, undefined, 2).replaceAll('`', '\\u0060')}\n\`\`\``;
}

function inCode(text: string): string {
  return text.replace(/[`\s]+/g, ' ').trim();
}

/** Text that mentions nobody, links nowhere and hides nothing. */
function inText(text: string): string {
  return `\`${inCode(text)}\``;
}

function lasted(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const named = parts.map((count, place) => (count === 0 ? '' : `${count} ${['h', 'min', 's'][place]}`));
  return named.filter((part) => part !== '').join(' ') || '0 s';
}
