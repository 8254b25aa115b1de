/** Entries of the witness as lines that people read. */
import { type Json, spoken, type WitnessedCommand, type WitnessEntry } from '../../core/index.ts';
import { printable } from '../output.ts';

/**
 * The story of one resource, entry by entry:
 *
 *     2026-11-17, in UTC
 *         #8  05:12:33.120  ann         acquired, token 41, "deploys 1.2"
 *         #9  05:12:40.731  ann         released, token 41
 *                           bob         acquired, token 42, after 7 s of waiting
 */
export class Story {
  #day = '';
  /** The columns grow with their contents; most stories fit into these widths. */
  #numberWidth = 4;
  #actorWidth = 10;

  /** `commands`: those of the entry that are to be told. */
  next(entry: WitnessEntry, commands = entry.commands): readonly string[] {
    const [day, time] = dayAndTime(entry);
    const heading = day === this.#day ? [] : [`${day}, in UTC`];
    this.#day = day;
    this.#numberWidth = Math.max(this.#numberWidth, `#${entry.seq}`.length);
    for (const command of commands) this.#actorWidth = Math.max(this.#actorWidth, actorOf(command).length);
    const lines = commands.map((command, at) => {
      const place = `${`#${entry.seq}`.padStart(this.#numberWidth)}  ${time}`;
      const first = at === 0 ? place : ' '.repeat(place.length);
      return `  ${first}  ${actorOf(command).padEnd(this.#actorWidth)}  ${deedOf(entry.resource, command)}`;
    });
    return [...heading, ...lines];
  }
}

/** `2026-11-17 05:12:33.120Z  lock/main #8  ann  acquired, token 41`. */
export function storyLines(entry: WitnessEntry, commands = entry.commands): readonly string[] {
  const where = `${dayAndTime(entry).join(' ')}Z  ${printable(entry.resource)} #${entry.seq}`;
  return commands.map((command) => `${where}  ${actorOf(command)}  ${deedOf(entry.resource, command)}`);
}

function dayAndTime({ time }: WitnessEntry): readonly [day: string, time: string] {
  const [day = '', rest = ''] = new Date(time).toISOString().split('T');
  return [day, rest.replace('Z', '')];
}

function actorOf({ actor, component }: WitnessedCommand): string {
  return printable(actor === '' ? component : actor);
}

/** `acquired, token 41, after 7 s of waiting`. What goes without saying is left out: --json has all of it. */
function deedOf(resource: string, command: WitnessedCommand): string {
  const { component, trace, waitedMs, detail = {}, outcome, events } = command;
  const kind = resource.slice(0, resource.indexOf('/'));
  const isUsual = resource.endsWith(`/${component}`) || component === kind || component === 'maintenance';
  const told = [
    outcomeOf(command),
    ...[...new Set([...MAIN, ...Object.keys(detail)])].flatMap((name) => detailTold(name, detail[name])),
    ...(waitedMs === undefined ? [] : [`after ${spoken(waitedMs)} of waiting`]),
    ...(trace === undefined ? [] : [`trace ${trace}`]),
    ...(isUsual ? [] : [`through ${component}`]),
  ];
  const unsaid = command.command === 'record' ? [] : events.filter((name) => !name.endsWith(`:${outcome}`));
  return printable(`${told.join(', ')}${unsaid.length === 0 ? '' : ` (${unsaid.join(', ')})`}`);
}

/** What a reader looks for first. */
const MAIN = ['token', 'mode', 'weight', 'reason', 'lost'];

/** Where the outcome does not read as what the actor did. */
const DEEDS: Readonly<Record<string, string>> = { broken: 'broke the hold', forgotten: 'forgot it', left: 'left' };

function outcomeOf({ command, outcome, events }: WitnessedCommand): string {
  if (command === 'record') return events.join(', ');
  if (command === 'observed') return `${outcome.replaceAll('-', ' ')}, observed by maintenance`;
  const isDone = outcome.startsWith(command.slice(0, -1)) || DEEDS[outcome] !== undefined;
  return isDone ? (DEEDS[outcome] ?? outcome) : `${command}: ${outcome.replaceAll('-', ' ')}`;
}

function detailTold(name: string, value: Json | undefined): readonly string[] {
  if (value === undefined) return [];
  if (name === 'mode') return value === 'exclusive' ? [] : [String(value)];
  if (name === 'weight' && value === 1) return [];
  if (value === true) return [name];
  if (name === 'reason') return typeof value === 'string' ? [JSON.stringify(value)] : [`reason ${valueTold(value)}`];
  if (name === 'lost' && Array.isArray(value)) return value.map(lossTold);
  return [`${name} ${valueTold(value)}`];
}

function lossTold(value: Json): string {
  const { holder, token, why } = Object(value) as { readonly [name: string]: Json };
  return `${String(holder)} lost token ${String(token)} (${String(why)})`;
}

/** What is entered as its hash is not readable, on purpose or because it is large. */
function valueTold(value: Json): string {
  const { sha256, bytes, salt } = Object(value) as { readonly [name: string]: Json };
  if (typeof sha256 === 'string' && typeof bytes === 'number')
    return salt === undefined ? `of ${bytes} bytes, SHA-256 ${sha256.slice(0, 12)}…` : `of ${bytes} bytes, hidden`;
  return typeof value === 'string' ? value : JSON.stringify(value);
}
