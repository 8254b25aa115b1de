/**
 * The entries of the witness, one for each write. Each names the hash of the entry before it, so that the entries of a
 * resource are a chain:
 *
 *     head { seq: 0, hash: 00… } ──▶ entry 1 { previous: 00…, hash: a1… } ──▶ entry 2 { previous: a1…, hash: b2… } ──▶ …
 *
 * The hash is the SHA-256 of the entry's canonical JSON without `hash`. docs/witness.md specifies all of it.
 */
import type { Json } from '../machine.ts';
import { isCount, isRecord } from '../shape.ts';
import { shown } from '../shown.ts';
import { bytesIn } from '../utf8.ts';
import { canonical, canonicalAgain, type Escape, escaped, plain, wellFormed } from './canonical.ts';

/** The SHA-256 of a text's UTF-8, in lower-case hex. The runtime passes Node's, because the core has none. */
export type Digest = (text: string) => string;

/** One command of a write, as the witness keeps it. */
export interface WitnessedCommand {
  /** The actor: the holder, the member, the user. */
  readonly actor: string;
  /** The component that asked: `lock`, `task`, `cli`, `server`, … */
  readonly component: string;
  /** The trace that it belongs to, if any. */
  readonly trace?: string;
  /** The command: `acquire`, `release`, … */
  readonly command: string;
  /** Its outcome: `acquired`, `queued`, … */
  readonly outcome: string;
  /** The names of its events, in order. */
  readonly events: readonly string[];
  /** How long the request had waited when it was decided. */
  readonly waitedMs?: number;
  /** Further facts. A large or sensitive value is replaced by its hash; see `entered`. */
  readonly detail?: { readonly [name: string]: Json };
}

/** One write of a resource, as the witness keeps it. */
export interface WitnessEntry {
  /** The version of the format: 1. */
  readonly v: 1;
  /** `lock/main`, `task/7`, … */
  readonly resource: string;
  /** The place in the chain of the resource, from 1. */
  readonly seq: number;
  /** The revision of the store that the write was decided on. */
  readonly revision: number;
  /** When, by the clock of the process that wrote it. In milliseconds since 1970. */
  readonly time: number;
  /** The hash of the entry before it; 64 zeros for the first. */
  readonly previous: string;
  /** The commands of the write, in order. */
  readonly commands: readonly WitnessedCommand[];
  /** The SHA-256 of the canonical JSON of all the rest, in hex. */
  readonly hash: string;
}

/** Where the chain of a resource ends, and up to where it was trimmed. */
export interface ChainHead {
  readonly resource: string;
  /** The number of the last entry; 0 before the first. */
  readonly seq: number;
  readonly hash: string;
  /** The last entry that was trimmed, if any was. */
  readonly trimmed?: { readonly seq: number; readonly hash: string };
}

/** The stand-in for a large or sensitive value. */
export type HashedValue = {
  /** The hash of the value's canonical JSON, after the salt if there is one. */
  readonly sha256: string;
  /** The length of its canonical JSON in UTF-8. */
  readonly bytes: number;
  readonly salt?: string;
};

/** What a write adds to the chain. */
export interface Witnessed {
  readonly revision: number;
  readonly time: number;
  readonly commands: readonly WitnessedCommand[];
}

export interface NextEntry {
  readonly entry: WitnessEntry;
  /** The canonical JSON of the entry, which is stored and exported. */
  readonly text: string;
  readonly head: ChainHead;
}

/** The hash that the first entry of a chain names as the previous one. */
export const NO_ENTRY = '0'.repeat(64);

/** In bytes; a larger value is entered as its hash. */
export const LARGEST_VALUE_BYTES = 1024;

/** The head of a chain without entries. */
export function emptyChain(resource: string): ChainHead {
  return { resource, seq: 0, hash: NO_ENTRY };
}

/** The entry of a write whose chain has this head. The write must compare the head, or the chain could fork. */
export function nextEntry(head: ChainHead, { revision, time, commands }: Witnessed, digest: Digest): NextEntry {
  const seq = head.seq + 1;
  const unsealed = { v: 1, resource: head.resource, seq, revision, time, previous: head.hash, commands } as const;
  const [before, after] = halves(unsealed);
  const hash = digest(before + after);
  const { trimmed } = head;
  return {
    entry: { ...unsealed, hash },
    // Joined, because a concatenated string keeps all its pieces in memory.
    text: [before, '"hash":"', hash, '",', after].join(''),
    head: { resource: head.resource, seq, hash, ...(trimmed && { trimmed }) },
  };
}

/** Computes the hash of an entry. `escape` is what `escapeOf` returned for the text that it was parsed from. */
export function entryHash(entry: Omit<WitnessEntry, 'hash'>, digest: Digest, escape?: Escape): string {
  const [before, after] = halves(entry, escape);
  return digest(before + after);
}

/** The canonical JSON of an entry, and of its line in an export, which has a `kind`. */
export function entryText(entry: WitnessEntry, kind?: 'entry'): string {
  const [before, after] = halves(entry);
  return `${before}"hash":"${escaped(entry.hash)}",${kind === undefined ? '' : '"kind":"entry",'}${after}`;
}

/**
 * The canonical JSON before and after the `hash`. Written field by field, because sorting the keys of every entry would take most
 * of the time, and in few pieces, because each piece costs time again when the text is hashed. A property test compares it with
 * `canonical`.
 */
function halves(entry: Omit<WitnessEntry, 'hash'>, escape: Escape = escaped): readonly [before: string, after: string] {
  const { commands, previous, resource, revision, seq, time, v } = entry;
  let before = '{"commands":[';
  for (let i = 0; i < commands.length; i++) {
    if (i > 0) before += ',';
    before += commandText(commands[i] as WitnessedCommand, escape);
  }
  const after =
    '"previous":"' +
    escape(previous) +
    '","resource":"' +
    escape(resource) +
    '","revision":' +
    number(revision) +
    ',"seq":' +
    number(seq) +
    ',"time":' +
    number(time) +
    ',"v":' +
    number(v) +
    '}';
  return [before + '],', after];
}

function commandText(command: WitnessedCommand, escape: Escape): string {
  const { actor, component, detail, events, outcome, trace, waitedMs } = command;
  let text =
    '{"actor":"' + escape(actor) + '","command":"' + escape(command.command) + '","component":"' + escape(component);
  text += detail === undefined ? '","events":[' : '","detail":' + canonicalAgain(detail, escape) + ',"events":[';
  for (let i = 0; i < events.length; i++) text += (i > 0 ? ',"' : '"') + escape(events[i] as string) + '"';
  text += '],"outcome":"' + escape(outcome) + '"';
  if (trace !== undefined) text += ',"trace":"' + escape(trace) + '"';
  return waitedMs === undefined ? text + '}' : text + ',"waitedMs":' + number(waitedMs) + '}';
}

function number(value: number): string {
  if (!Number.isFinite(value)) throw new TypeError(`${shown(value)} is no JSON`);
  return String(value);
}

/**
 * The form in which a value is entered: in full, or as its hash if it is larger than 1 KiB or comes with a salt, as sensitive
 * values do. Undefined for a value that JSON leaves out.
 */
export function entered(value: unknown, digest: Digest, salt?: string): Json | HashedValue | undefined {
  const json = plain(value);
  if (json === undefined) return undefined;
  const text = canonical(json);
  const bytes = bytesIn(text);
  if (salt !== undefined) return { sha256: digest(salt + text), bytes, salt };
  return bytes > LARGEST_VALUE_BYTES ? { sha256: digest(text), bytes } : json;
}

/** Cleans text from outside, so that it can be entered as an actor, a trace or another word of a command. */
export function enteredText(text: string, longest = 1000): string {
  return wellFormed(text.length > longest ? text.slice(0, longest) : text);
}

const LONGEST_RESOURCE = 2000;
const HASH = /^[0-9a-f]{64}$/;

const ENTRY_FIELDS = new Set(['v', 'resource', 'seq', 'revision', 'time', 'previous', 'commands', 'hash']);
const COMMAND_FIELDS = new Set([
  ...['actor', 'component', 'trace', 'command', 'outcome', 'events', 'waitedMs', 'detail'],
]);

/** Says why a value is not an entry; undefined if it is one. Does not check its hash. `isLine` means that it has a `kind`. */
export function entryProblem(value: unknown, isLine = false): string | undefined {
  if (!isRecord(value)) return `it is ${shown(value)}, not an object`;
  const { v, resource, seq, revision, time, previous, commands, hash } = value;
  if (v !== 1) return `v is ${shown(v)}; this signalbox reads 1`;
  const problem = resourceProblem(resource);
  if (problem !== undefined) return problem;
  if (!isCount(seq) || seq === 0) return `seq is ${shown(seq)}; expected a whole number of at least 1`;
  if (!isCount(revision)) return `revision is ${shown(revision)}; expected a whole number`;
  if (typeof time !== 'number') return `time is ${shown(time)}; expected milliseconds since 1970`;
  // The two hashes of a line are compared with computed ones, which proves more and costs less than checking their digits.
  if (!isHash(previous, isLine)) return `previous is ${shown(previous)}; expected 64 hexadecimal digits`;
  if (!isHash(hash, isLine)) return `hash is ${shown(hash)}; expected 64 hexadecimal digits`;
  if (!Array.isArray(commands)) return `commands is ${shown(commands)}; expected a list`;
  for (const key in value)
    if (!ENTRY_FIELDS.has(key) && !(isLine && key === 'kind')) return `${shown(key)} is no field of an entry`;
  for (let i = 0; i < commands.length; i++) {
    const wrong = commandProblem(commands[i]);
    if (wrong !== undefined) return `commands[${i}]: ${wrong}`;
  }
  return undefined;
}

function commandProblem(value: unknown): string | undefined {
  if (!isRecord(value)) return `it is ${shown(value)}, not an object`;
  const { actor, component, trace = '', command, outcome, events, waitedMs = 0, detail } = value;
  if (typeof actor !== 'string') return `actor is ${shown(actor)}; expected text`;
  if (typeof component !== 'string') return `component is ${shown(component)}; expected text`;
  if (typeof trace !== 'string') return `trace is ${shown(trace)}; expected text`;
  if (typeof command !== 'string') return `command is ${shown(command)}; expected text`;
  if (typeof outcome !== 'string') return `outcome is ${shown(outcome)}; expected text`;
  if (typeof waitedMs !== 'number') return `waitedMs is ${shown(waitedMs)}; expected milliseconds`;
  if (!Array.isArray(events)) return `events is ${shown(events)}; expected a list of names`;
  for (const name of events) if (typeof name !== 'string') return `events has ${shown(name)}; expected names`;
  if (detail !== undefined && !isRecord(detail)) return `detail is ${shown(detail)}; expected an object`;
  for (const key in value) if (!COMMAND_FIELDS.has(key)) return `${shown(key)} is no field of a command`;
  return undefined;
}

/** Says why a value is not the head of a chain; undefined if it is one. */
export function headProblem(value: unknown): string | undefined {
  if (!isRecord(value)) return `it is ${shown(value)}, not an object`;
  const { resource, seq, hash, trimmed } = value;
  const problem = resourceProblem(resource) ?? placeProblem({ seq, hash });
  if (problem !== undefined || trimmed === undefined) return problem;
  if (!isRecord(trimmed)) return `trimmed is ${shown(trimmed)}, not an object`;
  const wrong = placeProblem(trimmed);
  if (wrong !== undefined) return `trimmed: ${wrong}`;
  return (trimmed['seq'] as number) > (seq as number) ? `trimmed.seq is ${shown(trimmed['seq'])}, over seq` : undefined;
}

/** Accepts names that signalbox would not give, because other programs name tasks too. */
function resourceProblem(value: unknown): string | undefined {
  const isAccepted = typeof value === 'string' && value.length > 0 && value.length <= LONGEST_RESOURCE;
  return isAccepted ? undefined : `resource is ${shown(value)}; expected 1 to ${LONGEST_RESOURCE} characters`;
}

function placeProblem({ seq, hash }: Readonly<Record<string, unknown>>): string | undefined {
  if (!isCount(seq)) return `seq is ${shown(seq)}; expected a whole number`;
  return isHash(hash) ? undefined : `hash is ${shown(hash)}; expected 64 hexadecimal digits`;
}

/** With `onlyLength`, it does not check the digits. */
export function isHash(value: unknown, onlyLength = false): value is string {
  return typeof value === 'string' && (onlyLength ? value.length === 64 : HASH.test(value));
}
