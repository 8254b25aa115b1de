/** What somebody with access to a record could do to it, at every position. */
import { emptyChain, entryLine, nextEntry, type WitnessEntry } from '../../src/core/index.ts';
import { sha256 } from '../../src/host/index.ts';

export interface Mutation {
  readonly what: string;
  readonly lines: readonly string[];
  /** What it may be called. */
  readonly kinds: readonly string[];
  /** The entry that is to be named, where it can be; of two, either. */
  readonly at?: Place | readonly [Place, Place];
  /** The line that is to be named, where it can be. */
  readonly line?: number;
}

interface Place {
  readonly resource: string;
  readonly seq: number;
}

/** Every mutation of the lines, one after the other. */
export function* mutationsOf(lines: readonly string[]): Generator<Mutation> {
  for (let i = 0; i < lines.length; i++) {
    yield* flips(lines, i);
    yield drop(lines, i);
    yield copy(lines, i, i + 1);
    yield copy(lines, i, (i * 31) % (lines.length + 1));
    if (i + 1 < lines.length) yield swap(lines, i, i + 1);
    yield cut(lines, i);
    const entry = entryIn(lines[i] as string);
    if (entry === undefined) continue;
    yield* forgeries(lines, i, entry);
  }
}

function* flips(lines: readonly string[], i: number): Generator<Mutation> {
  const line = lines[i] as string;
  const entry = entryIn(line);
  // One bit of each third of the line, at another place in every line.
  for (let part = 0; part < 3; part++) {
    const at = Math.floor((line.length * (part + ((i * 7 + part * 3) % 10) / 10)) / 3);
    const flipped = line.slice(0, at) + String.fromCharCode(line.charCodeAt(at) ^ 1) + line.slice(at + 1);
    // The last digit of a number may be one too many to change it.
    if (isSameValue(line, flipped)) continue;
    yield {
      what: `flip a bit of line ${i + 1} at ${at}`,
      lines: lines.with(i, flipped),
      kinds: flipKinds(line, i, lines),
      // What the end shows is at no line.
      ...(i < lines.length - 1 && { line: i + 1 }),
    };
  }
  if (entry === undefined) return;
  const changed = JSON.stringify({ ...entry, time: entry.time + 1, kind: 'entry' });
  yield {
    ...{ what: `change the time in line ${i + 1}`, lines: lines.with(i, changed) },
    ...{ kinds: ['changed'], at: entry, line: i + 1 },
  };
}

function isSameValue(line: string, flipped: string): boolean {
  try {
    return JSON.stringify(JSON.parse(flipped)) === line;
  } catch {
    return false;
  }
}

/** The last line cut in the middle cannot be told from one that is damaged. */
function flipKinds(line: string, i: number, lines: readonly string[]): string[] {
  if (i === lines.length - 1) return ['changed', 'truncated'];
  return i === 0 ? ['changed', 'missing'] : ['changed'];
}

function drop(lines: readonly string[], i: number): Mutation {
  const entry = entryIn(lines[i] as string);
  const isLast = entry !== undefined && entryIn(lines[i + 1] as string)?.resource !== entry.resource;
  const isEnd = i === lines.length - 1 || (kindOf(lines[i]) === 'checkpoint' && kindOf(lines[i + 1]) !== 'checkpoint');
  return {
    what: `drop line ${i + 1}`,
    lines: lines.toSpliced(i, 1),
    kinds: [isLast || isEnd ? 'truncated' : 'missing'],
    ...(entry && { at: entry }),
  };
}

function copy(lines: readonly string[], i: number, place: number): Mutation {
  const what = `insert a copy of line ${i + 1} before line ${place + 1}`;
  const copied = lines.toSpliced(place, 0, lines[i] as string);
  const entry = entryIn(lines[i] as string);
  if (place === i || place === i + 1) return { what, lines: copied, kinds: ['inserted'], ...(entry && { at: entry }) };
  // Far from the original, only the chains around it tell what it is.
  return { what, lines: copied, kinds: ['inserted', 'missing', 'reordered', 'changed'] };
}

function swap(lines: readonly string[], i: number, j: number): Mutation {
  const [one, other] = [lines[i] as string, lines[j] as string];
  const what = `swap lines ${i + 1} and ${j + 1}`;
  const [entry, next] = [entryIn(one), entryIn(other)];
  return {
    ...{ what, lines: lines.with(i, other).with(j, one), kinds: i === 0 ? ['missing'] : ['reordered'] },
    // Of two chains side by side, the verifier cannot tell which entry went astray.
    ...(entry && next && { at: [entry, next] as const }),
  };
}

function cut(lines: readonly string[], i: number): Mutation {
  return { what: `cut off line ${i + 1} and all after it`, lines: lines.slice(0, i), kinds: ['truncated'] };
}

/** Entries that have a hash of their own, as somebody makes them who has read how. */
function* forgeries(lines: readonly string[], i: number, entry: WitnessEntry): Generator<Mutation> {
  const { resource, seq, previous, revision, time } = entry;
  const commands = [{ actor: 'mallory', component: 'lock', command: 'break', outcome: 'broken', events: [] }];
  const forge = (after: { seq: number; hash: string }): string =>
    entryLine(nextEntry({ ...emptyChain(resource), ...after }, { revision, time, commands }, sha256).entry);
  const fork = forge({ seq: seq - 1, hash: previous });
  const at = { resource, seq };
  yield { what: `fork after line ${i + 1}`, lines: lines.toSpliced(i + 1, 0, fork), kinds: ['forked'], at };
  yield { what: `fork before line ${i + 1}`, lines: lines.toSpliced(i, 0, fork), kinds: ['forked', 'changed'], at };
  yield { what: `replace line ${i + 1}, with its hash`, lines: lines.with(i, fork), kinds: ['changed'], at };
  const stray = forge({ seq, hash: sha256('nothing') });
  const isLast = entryIn(lines[i + 1] as string)?.resource !== resource;
  yield {
    what: `insert an entry that follows nothing after line ${i + 1}`,
    lines: lines.toSpliced(i + 1, 0, stray),
    // Nothing after the last entry tells which of the two is wrong.
    kinds: isLast ? ['changed', 'inserted'] : ['inserted'],
    ...(!isLast && { at: { resource, seq: seq + 1 } }),
  };
  const grown = forge(entry);
  yield {
    what: `insert an entry that follows line ${i + 1}`,
    lines: lines.toSpliced(i + 1, 0, grown),
    // A checkpoint may know the entry that is there already.
    kinds: isLast ? ['inserted'] : ['forked', 'changed'],
    at: { resource, seq: seq + 1 },
  };
}

function kindOf(line: string | undefined): unknown {
  return line === undefined ? undefined : (JSON.parse(line) as { kind: unknown }).kind;
}

function entryIn(line: string): WitnessEntry | undefined {
  const { kind, ...entry } = JSON.parse(line) as WitnessEntry & { kind: string };
  return kind === 'entry' ? entry : undefined;
}
