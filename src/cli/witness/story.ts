/** Entries of the witness as lines that people read. */
import type { WitnessedCommand, WitnessEntry } from '../../core/index.ts';
import { printable } from '../output.ts';

/** `2026-11-17 05:12:33.120  lock/main #8  ann acquire: acquired (lock:acquired) token 41, after 1.2 s`. */
export function storyOf(entry: WitnessEntry, withResource: boolean): readonly string[] {
  const at = new Date(entry.time).toISOString().replace('T', ' ').replace('Z', '');
  const where = withResource ? `${entry.resource} #${entry.seq}` : `#${entry.seq}`;
  return entry.commands.map((command) => printable(`${at}  ${where}  ${commandStory(command)}`));
}

function commandStory({
  actor,
  component,
  trace,
  command,
  outcome,
  events,
  waitedMs,
  detail,
}: WitnessedCommand): string {
  const told = [
    ...Object.entries(detail ?? {}).map(([name, value]) => `${name} ${short(value)}`),
    ...(waitedMs === undefined ? [] : [`after ${waitedMs} ms`]),
    ...(trace === undefined ? [] : [`trace ${trace}`]),
  ];
  const what = command === outcome ? command : `${command}: ${outcome}`;
  const heard = events.length === 0 ? '' : ` (${events.join(', ')})`;
  return `${actor === '' ? component : actor} ${what}${heard}${told.length === 0 ? '' : ` ${told.join(', ')}`}`;
}

function short(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
