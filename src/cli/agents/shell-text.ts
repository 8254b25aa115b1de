/**
 * Finds the commands in a line of shell, with the directory that each would run in. It reads as much of the shell's grammar as
 * it takes not to be fooled by quotes, comments, here-documents and subshells; it evaluates nothing. What a variable or another
 * command would supply is not known, and such a word says so.
 */
import { isAbsolute, join } from 'node:path/posix';

export interface Word {
  readonly text: string;
  /** Nothing in it has to be evaluated. */
  readonly isPlain: boolean;
  /** Where it begins in the text; undefined inside another command, such as `$(…)`. */
  readonly at: number | undefined;
}

export interface Found {
  readonly words: readonly Word[];
  /** Undefined if that is unknown. */
  readonly directory: string | undefined;
}

/** Words before a command that are not part of it. */
const KEYWORDS = new Set(['if', 'then', 'else', 'elif', 'while', 'until', 'do', '!', '{', 'time']);
const DEEPEST = 8;

export function commandsIn(text: string, directory: string | undefined, home?: string): readonly Found[] {
  return new Reader(text, directory, home, 0).all();
}

class Reader {
  readonly #text: string;
  readonly #home: string | undefined;
  readonly #depth: number;
  readonly #found: Found[] = [];
  readonly #outer: (string | undefined)[] = [];
  /** Delimiters of here-documents whose bodies begin at the next line. */
  #documents: { readonly end: string; readonly isIndented: boolean }[] = [];
  #directory: string | undefined;
  #words: Word[] = [];
  #at = 0;

  constructor(text: string, directory: string | undefined, home: string | undefined, depth: number) {
    this.#text = text;
    this.#directory = directory;
    this.#home = home;
    this.#depth = depth;
  }

  all(): readonly Found[] {
    while (this.#at < this.#text.length) this.#step();
    this.#end();
    return this.#found;
  }

  #step(): void {
    const rest = this.#text.slice(this.#at);
    const [character = ''] = rest;
    if (character === '\n') {
      this.#end();
      this.#at += 1;
      return this.#skipDocuments();
    }
    if (/[ \t\r]/.test(character) || rest.startsWith('\\\n')) {
      this.#at += character === '\\' ? 2 : 1;
    } else if (character === '#') {
      this.#at += /^[^\n]*/.exec(rest)?.[0].length ?? 1;
    } else if (character === '(') {
      this.#end();
      this.#outer.push(this.#directory);
      this.#at += 1;
    } else if (character === ')') {
      this.#end();
      if (this.#outer.length > 0) this.#directory = this.#outer.pop();
      this.#at += 1;
    } else if (/^(?:&&|\|\||;;|\|&|[;&|])/.test(rest) && !/^&>/.test(rest)) {
      this.#end();
      this.#at += /^(?:&&|\|\||;;|\|&|[;&|])/.exec(rest)?.[0].length ?? 1;
    } else if (/^(?:&>>?|\d*(?:>>|>&|>\||<&|<>|<<<|<<-?|[<>]))/.test(rest)) this.#redirection(rest);
    else this.#words.push(this.#word());
  }

  #redirection(rest: string): void {
    const operator = /^(?:&>>?|\d*(?:>>|>&|>\||<&|<>|<<<|<<-?|[<>]))/.exec(rest)?.[0] ?? '<';
    this.#at += operator.length;
    if (this.#text[this.#at] === '(') return;
    while (/[ \t]/.test(this.#text[this.#at] ?? '')) this.#at += 1;
    const { text } = this.#word();
    if (/^\d*<<-?$/.test(operator)) this.#documents.push({ end: text, isIndented: operator.endsWith('-') });
  }

  #skipDocuments(): void {
    for (const { end, isIndented } of this.#documents) {
      while (this.#at < this.#text.length) {
        const line = /^[^\n]*/.exec(this.#text.slice(this.#at))?.[0] ?? '';
        this.#at += line.length + 1;
        if ((isIndented ? line.replace(/^\t+/, '') : line) === end) break;
      }
    }
    this.#documents = [];
  }

  #word(): Word {
    const at = this.#at;
    let text = '';
    let isPlain = true;
    let isQuoted = false;
    for (; this.#at < this.#text.length; this.#at++) {
      const character = this.#text[this.#at] as string;
      const next = this.#text[this.#at + 1] ?? '';
      if (character === "'" && !isQuoted) {
        const end = this.#text.indexOf("'", this.#at + 1);
        text += this.#text.slice(this.#at + 1, end < 0 ? undefined : end);
        this.#at = end < 0 ? this.#text.length : end;
      } else if (character === '"') isQuoted = !isQuoted;
      else if (character === '\\') {
        if (isQuoted && !/["$`\\\n]/.test(next)) text += character;
        if (next !== '\n') text += next;
        this.#at += 1;
      } else if (character === '`' || (character === '$' && next === '(')) {
        isPlain = false;
        this.#substitution(character);
      } else if (character === '$' && /[\w{@*#?!$-]/.test(next)) {
        isPlain = false;
        text += character;
      } else if (!isQuoted && /[\s;&|()<>]/.test(character)) break;
      else text += character;
    }
    return { text, isPlain, at };
  }

  /** Stops at its last character. What is inside is run too. */
  #substitution(opens: string): void {
    const begin = this.#at + (opens === '`' ? 1 : 2);
    let end = begin;
    if (opens === '`') end = this.#text.indexOf('`', begin);
    else
      for (let open = 1; end < this.#text.length; end++) {
        if (this.#text[end] === '(') open += 1;
        else if (this.#text[end] === ')' && --open === 0) break;
      }
    if (end < 0) end = this.#text.length;
    this.#inside(this.#text.slice(begin, end));
    this.#at = end;
  }

  #inside(text: string): void {
    if (this.#depth >= DEEPEST) return;
    const inner = new Reader(text, this.#directory, this.#home, this.#depth + 1).all();
    this.#found.push(...inner.map(({ words, directory }) => ({ words: words.map(nowhere), directory })));
  }

  /** A command is complete: notes it, and what it does to the commands after it. */
  #end(): void {
    const words = this.#words;
    this.#words = [];
    while (words[0] !== undefined && (KEYWORDS.has(words[0].text) || /^\w+=/.test(words[0].text))) words.shift();
    const [program] = words;
    if (program === undefined) return;
    if (program.text === 'cd' || program.text === 'pushd') return this.#changeDirectory(words);
    this.#found.push({ words, directory: this.#directory });
  }

  #changeDirectory(words: readonly Word[]): void {
    const [, ...rest] = words;
    const to = rest.filter(({ text }) => !/^-[LPe@]+$|^--$/.test(text))[0];
    this.#directory = to === undefined ? this.#home : resolved(this.#directory, to, this.#home);
  }
}

function nowhere(word: Word): Word {
  return { ...word, at: undefined };
}

/** The last part of a path: which program it is. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Undefined if that is unknown. */
export function resolved(from: string | undefined, { text, isPlain }: Word, home?: string): string | undefined {
  if (!isPlain || text === '-' || /[*?[]/.test(text)) return undefined;
  if (text === '~' || text.startsWith('~/')) return home === undefined ? undefined : join(home, text.slice(1));
  if (isAbsolute(text)) return join(text);
  return from === undefined ? undefined : join(from, text);
}
