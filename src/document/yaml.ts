/**
 * Reads YAML 1.2 carefully: refuses a file that was made to take forever, to fill the memory, or to mean something else
 * than it says, before it can.
 *
 *     text ──lexer, parser──▶ tokens ──composer──▶ nodes ──convert──▶ value
 *             counted, and                          the words for
 *             not too deep                          what is wrong
 */
import { Composer, type Document as Composed, Lexer, type Node, Parser } from 'yaml';
import type { Path } from '../core/index.ts';
import { Conversion } from './convert.ts';
import { Lines, type Place, type PlacedProblem } from './place.ts';
import { syntaxTold } from './syntax.ts';

export type ReadYaml =
  | { readonly ok: true; readonly value: unknown; placeOf(path: Path): Place }
  | { readonly ok: false; readonly problems: readonly PlacedProblem[] };

/** Twice as deep as conditions go. The composer is recursive, and a stack overflow would end the whole process. */
const DEEPEST = 300;
/** A runbook of 200 phases has some 20,000 tokens. */
const MOST_TOKENS = 200_000;

export function readYaml(text: string): ReadYaml {
  const lines = new Lines(text);
  const refused = (offset: number, message: string): ReadYaml => ({
    ok: false,
    problems: [{ ...lines.placeOf(offset), message }],
  });
  const parsed = parse(text);
  if ('refused' in parsed) return refused(parsed.at, parsed.refused);
  const [document, second] = compose(parsed.tokens, text.length);
  if (document === undefined) return refused(0, NOTHING);
  const problems = syntaxProblems(document, text, lines);
  if (second !== undefined) {
    problems.push({ ...lines.placeOf(startOf(second, text)), message: 'a second document begins; expected one' });
  }
  if (problems.length > 0) return { ok: false, problems };
  if (document.contents === null || isNothing(document.contents)) return refused(0, NOTHING);
  const conversion = new Conversion();
  const value = conversion.valueOf(document.contents);
  const told = conversion.problems.map(({ offset, message }) => ({ ...lines.placeOf(offset), message }));
  if (told.length > 0) return { ok: false, problems: told };
  return { ok: true, value, placeOf: (path) => lines.placeOf(conversion.offsetOf(document.contents as Node, path)) };
}

const NOTHING = 'there is nothing in it';

type Parsed = { readonly tokens: readonly Token[] } | { readonly refused: string; readonly at: number };
type Token = Parameters<Composer['next']>[0];

function parse(text: string): Parsed {
  // Reported first, because a directive would change the meaning of the rest.
  const directive = /^%.*$/m.exec(text.slice(0, /^---/m.exec(text)?.index ?? 0));
  if (directive !== null) {
    return {
      refused: `the line ${directive[0]} is a directive; expected YAML 1.2 without any`,
      at: directive.index,
    };
  }
  const parser = new Parser();
  const tokens: Token[] = [];
  let count = 0;
  for (const lexeme of new Lexer().lex(text)) {
    tokens.push(...parser.next(lexeme));
    if (parser.stack.length > DEEPEST) return { refused: 'it is nested too deep', at: parser.offset };
    count++;
    if (count > MOST_TOKENS) return { refused: 'it has too many parts', at: parser.offset };
  }
  tokens.push(...parser.end());
  return { tokens };
}

function compose(tokens: readonly Token[], length: number): readonly Composed.Parsed[] {
  const composer = new Composer({
    version: '1.2',
    schema: 'core',
    merge: false,
    stringKeys: true,
    prettyErrors: false,
    // The conversion looks for duplicates: the composer would compare each key with all others.
    uniqueKeys: false,
  });
  return [...composer.compose(tokens, true, length)];
}

/** Reports one mistake per line: further ones in the same line most often follow from the first. */
function syntaxProblems(document: Composed.Parsed, text: string, lines: Lines): PlacedProblem[] {
  const byLine = new Map<number, PlacedProblem>();
  for (const error of [...document.errors, ...document.warnings]) {
    const { offset, message, isSequel } = syntaxTold(error, document, text);
    const place = lines.placeOf(behindSpaces(text, offset));
    if (!(isSequel && byLine.size > 0) && !byLine.has(place.line)) byLine.set(place.line, { ...place, message });
  }
  return [...byLine.values()];
}

function isNothing(node: Node): boolean {
  return 'value' in node && node.value === null && 'source' in node && (node.source ?? '') === '';
}

/** Where the contents begin, or else the dashes that begin the document. */
function startOf({ range, contents }: Composed.Parsed, text: string): number {
  const from = contents?.range?.[0] ?? range[0];
  return Math.min(from, Math.max(0, text.length - 1));
}

/** Skips spaces, because an error about a line is about its first word. */
function behindSpaces(text: string, offset: number): number {
  let at = offset;
  while (text[at] === ' ') at++;
  return at;
}
