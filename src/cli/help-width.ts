/**
 * Fits the text after the options of a help into the width of the terminal. commander does it only for descriptions and
 * options, and a terminal would break the rest in the middle of words.
 */

/** Leaves what fits as it was written, so that columns stay aligned. */
export function fitted(text: string, width: number): string {
  return blocksOf(text.split('\n'))
    .flatMap((block) => (block.every((line) => line.length <= width) ? block : fittedBlock(block, width)))
    .join('\n');
}

/** Lines that belong together: a paragraph, or indented lines such as examples. */
function blocksOf(lines: readonly string[]): readonly (readonly string[])[] {
  const blocks: string[][] = [];
  for (const line of lines) {
    const before = blocks.at(-1)?.at(-1);
    const continues = before !== undefined && before !== '' && line !== '' && isLike(before, line);
    if (continues) blocks.at(-1)?.push(line);
    else blocks.push([line]);
  }
  return blocks;
}

function isLike(before: string, line: string): boolean {
  if (line.startsWith(HANGING)) return true;
  return before.startsWith(' ') === line.startsWith(' ') && !line.startsWith(EXIT_CODES);
}

const EXIT_CODES = 'Exit codes: ';
const HANGING = ' '.repeat(EXIT_CODES.length);
const INDENT = '  ';
const BELOW = ' '.repeat(6);

function fittedBlock(block: readonly string[], width: number): readonly string[] {
  const [first = ''] = block;
  const words = block.map((line) => line.trim()).join(' ');
  if (first.startsWith(EXIT_CODES)) {
    const [begin = '', ...codes] = block.flatMap((line) => line.trim().split(' · '));
    return filled([begin, ...codes], width, HANGING, ' · ');
  }
  if (!first.startsWith(INDENT)) return filled(words.split(' '), width);
  const rows = block.map(columnsOf);
  const isTooWide = rows.some(({ right, line }) => right !== '' && line.length > width);
  return rows.flatMap((row) => {
    const { left, right, line, column } = row;
    if (right !== '' && column <= width / 3) return hanging(row, width);
    if (right !== '' && isTooWide)
      return [...command(left, width), ...filled(right.split(' '), width, BELOW, ' ', BELOW)];
    return line.length <= width ? [line] : command(left, width);
  });
}

interface Row {
  readonly line: string;
  readonly left: string;
  readonly right: string;
  /** Where the right one begins. */
  readonly column: number;
}

/** An example and what it does, or a word and what it means, with at least two spaces between them. */
function columnsOf(line: string): Row {
  const [, left = line, gap = '', right = ''] = /^(\s*\S.*?)(\s{2,})(\S.*)$/.exec(line) ?? [];
  return { line, left, right, column: left.length + gap.length };
}

function hanging({ line, left, right, column }: Row, width: number): readonly string[] {
  if (line.length <= width) return [line];
  const below = ' '.repeat(column);
  return filled(right.split(' '), width, below, ' ', left.padEnd(column));
}

/** Breaks a command before an option, a pipe or the command that it runs, so that a shell still takes it as one line. */
function command(line: string, width: number): readonly string[] {
  const indent = /^\s*/.exec(line)?.[0] ?? '';
  const room = width - BELOW.length - CONTINUED.length;
  const parts = partsOf(line.trim(), PART).flatMap((part) => (part.length > room ? partsOf(part, SHORT_OPTION) : part));
  const lines = filled(parts, width - CONTINUED.length, BELOW, ' ', indent);
  return lines.map((one, place) => (place < lines.length - 1 ? `${one}${CONTINUED}` : one));
}

const CONTINUED = ' \\';
const PART = /^(--(\w|$)|\||&&|https?:|[A-Z_]+=)/;
/** May belong to the command that is run, as in `sh -c`, so it is the last choice. */
const SHORT_OPTION = /^-\w/;

/** Never breaks within quotes, nor between an option and its value. */
function partsOf(text: string, begin: RegExp): readonly string[] {
  const parts: string[] = [];
  for (const word of text.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? []) {
    if (parts.length === 0 || begin.test(word)) parts.push(word);
    else parts.push(`${parts.pop()} ${word}`);
  }
  return parts;
}

function filled(parts: readonly string[], width: number, below = '', between = ' ', begin = ''): readonly string[] {
  const lines: string[] = [];
  let line = begin;
  let isEmpty = true;
  for (const part of parts) {
    if (!isEmpty && line.length + between.length + part.length > width) {
      lines.push(line);
      line = below;
      isEmpty = true;
    }
    line += isEmpty ? part : `${between}${part}`;
    isEmpty = false;
  }
  return [...lines, line];
}
