/** Explains syntax errors to readers who do not know the YAML specification. */
import { type Document as Composed, isScalar, Scalar, visit, type YAMLError } from 'yaml';

export interface ToldSyntax {
  readonly offset: number;
  readonly message: string;
  /** The parser no longer knows where it is: it only reports what follows from the first mistake. */
  readonly isSequel: boolean;
}

type Words = string | ((found: string) => string);

/** Explanations by the parser's message; the first that fits is used. */
const BY_MESSAGE: readonly (readonly [RegExp, Words])[] = [
  [/^Flow (sequence|map).* end with a (.)/, (found) => notClosed(found)],
  [/^Missing closing (.)quote/, 'the quote that begins here is not closed'],
  [/^All mapping items must start at the same column/, 'this key is not indented like those before it'],
  [/^All sequence items must start at the same column/, 'this - is not indented like those before it'],
  [
    /^Nested mappings are not allowed in compact/,
    'a second "key: value" in one line; text with ": " in it goes between quotes',
  ],
  [
    /^Implicit keys need to be on a single line/,
    'a line without "key:"; or the line before it is one that nothing can follow',
  ],
  [/^Implicit map keys need to be followed by map values/, 'a key without ":"; expected "key: value"'],
  [
    /^Plain value cannot start with .*character (.)$/,
    (found) => `text cannot begin with ${found.at(-1)}; it goes between quotes`,
  ],
  [
    /^Invalid escape sequence (.*)$/,
    (found) =>
      `${found.replace(/^.*sequence /, '')} is no escape; a backslash in double quotes is \\\\, and in single quotes just \\`,
  ],
  [/at node end$/, 'there is more text after the end of the value; the whole of it goes between quotes'],
  [/^Unexpected (.) in flow/, 'a comma with nothing before it'],
  [/flow-(map|seq)-end/, 'a bracket closes that was never opened; text that begins with one goes between quotes'],
];

/** The message if the parser gives no better one. */
const BY_CODE: Readonly<Record<string, string>> = {
  TAB_AS_INDENT: 'a tab indents this line; expected spaces',
  BAD_INDENT: 'this line is not indented like those it belongs to',
  NON_STRING_KEY: 'a key is no text; expected keys that are text',
  MULTIPLE_ANCHORS: 'two anchors (&name) for one value; expected one',
  MULTIPLE_TAGS: 'tags (!name) are not accepted; text that begins with ! goes between quotes',
  TAG_RESOLVE_FAILED: 'tags (!name) are not accepted; text that begins with ! goes between quotes',
  BAD_ALIAS: 'an alias (*name) has no name; text that begins with * goes between quotes',
  ALIAS_PROPS: 'an alias (*name) can have no anchor and no tag',
  BLOCK_IN_FLOW: 'a comma is missing before this, or a bracket is not closed',
  UNEXPECTED_TOKEN: 'nothing like this can be here; text with punctuation in it goes between quotes',
  KEY_OVER_1024_CHARS: 'a key is longer than 1024 characters',
  RESOURCE_EXHAUSTION: 'it is nested too deep',
};

export function syntaxTold({ code, message, pos }: YAMLError, document: Composed.Parsed, text: string): ToldSyntax {
  const offset = /^Missing closing .quote/.test(message) ? (lastQuoted(document) ?? pos[0]) : pos[0];
  const isSequel = /in YAML stream/.test(message);
  // `${…}` is a variable of a runbook: between brackets, YAML would take its braces for its own.
  if (text.startsWith('${', offset - 1)) {
    return { offset: offset - 1, message: 'between [ ] or { }, ${…} goes between quotes', isSequel };
  }
  const [pattern, words] = BY_MESSAGE.find(([fits]) => fits.test(message)) ?? [];
  if (words === undefined) return { offset, message: BY_CODE[code] ?? message, isSequel };
  const found = pattern?.exec(message)?.[0] ?? '';
  return { offset, message: typeof words === 'string' ? words : words(found), isSequel };
}

function notClosed(found: string): string {
  const close = found.at(-1) ?? ']';
  return `a ${close === '}' ? '{' : '['} before this is not closed with ${close}, or what is in it is not indented`;
}

/** The parser reports the end of the file; the author needs the place of the quote that was not closed. */
function lastQuoted(document: Composed.Parsed): number | undefined {
  let last: number | undefined;
  visit(document, (_, node) => {
    if (!isScalar(node)) return;
    if (node.type === Scalar.QUOTE_DOUBLE || node.type === Scalar.QUOTE_SINGLE) last = node.range?.[0] ?? last;
  });
  return last;
}
