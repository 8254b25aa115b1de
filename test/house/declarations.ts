/** Reads the declarations of the package as the build writes them: every declaration begins a line, and every member has two spaces before it. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface Declaration {
  readonly name: string;
  readonly file: string;
  readonly isDocumented: boolean;
  /** The names that come after `extends`. */
  readonly parents: readonly string[];
  readonly members: readonly Member[];
}

export interface Member {
  readonly name: string;
  readonly isDocumented: boolean;
}

/** Every declaration that an entry such as `index.d.ts` exports, through whichever files. */
export function exportedBy(entry: string): readonly Declaration[] {
  const known = exported.get(entry) ?? readExports(entry);
  exported.set(entry, known);
  return known;
}

const exported = new Map<string, readonly Declaration[]>();

function readExports(entry: string): readonly Declaration[] {
  const text = linesOf(entry).join('\n');
  const own = declarationsIn(entry);
  const imported = named(/^import (?:type )?\{(?<names>[^}]*)\} from "(?<from>\.[^"]+)";/gm, text);
  return named(/^export (?:type )?\{(?<names>[^}]*)\};/gm, text).flatMap(({ was, is }) => {
    const here = own.filter(({ name }) => name === was);
    const there = imported
      .filter((one) => one.is === was)
      .flatMap(({ from, was: name }) => {
        const file = join(dirname(entry), from.replace(/\.js$/, '.d.ts'));
        return exportedBy(file).filter((one) => one.name === name);
      });
    return [...here, ...there].map((one) => ({ ...one, name: is }));
  });
}

/** Everything that a file declares, for users or not. */
export function declarationsIn(file: string): readonly Declaration[] {
  const lines = linesOf(file);
  return lines.flatMap((line, place) => {
    const found = DECLARED.exec(line);
    if (found?.groups === undefined) return [];
    const { name = '' } = found.groups;
    const head = headFrom(lines, place);
    const parents = (/ extends (?<all>[^{]*)/.exec(head)?.groups?.['all'] ?? '')
      .replace(/ implements .*/, '')
      .split(/,(?![^<]*>)/)
      .map((parent) => /[\w$]+/.exec(parent)?.[0] ?? '')
      .filter((parent) => parent !== '');
    const members = / (?:class|interface) /.test(line) ? membersFrom(lines, place) : [];
    const isDocumented = endsWithDoc(lines, place, '');
    return [{ name, file, isDocumented, parents, members }];
  });
}

const DECLARED = /^(?:export )?(?:declare )?(?:abstract )?(?:class|interface|type|function|const) (?<name>[\w$]+)/;

/** A long list of parents may take several lines. */
function headFrom(lines: readonly string[], place: number): string {
  const end = lines.findIndex((line, at) => at >= place && line.includes('{'));
  return lines.slice(place, end + 1).join(' ');
}

function membersFrom(lines: readonly string[], place: number): readonly Member[] {
  const members = new Map<string, boolean>();
  const first = lines.findIndex((line, at) => at >= place && line.includes('{')) + 1;
  if (lines[first - 1]?.endsWith('}') === true) return [];
  for (let at = first; at < lines.length && lines[at] !== '}'; at++) {
    const found = MEMBER.exec(lines[at] ?? '');
    const name = found?.groups?.['name'];
    if (name === undefined || name === '#private') continue;
    // One comment is enough for all overloads.
    members.set(name, members.get(name) === true || endsWithDoc(lines, at, '  '));
  }
  return [...members].map(([name, isDocumented]) => ({ name, isDocumented }));
}

const MEMBER = /^ {2}(?:(?:static|abstract|protected|readonly|get|set|async) )*(?<name>#?[\w$]+|\[[^\]]+\])[?<(:;]/;

/** Whether a comment for users ends right before this line. */
function endsWithDoc(lines: readonly string[], place: number, indent: string): boolean {
  const before = lines[place - 1] ?? '';
  if (before.startsWith(`${indent}/** `)) return before.endsWith('*/');
  return before.startsWith(`${indent} `) && before.trim() === '*/';
}

interface Named {
  readonly was: string;
  readonly is: string;
  readonly from: string;
}

/** What lists such as `{ A, type B, C as D }` name. */
function named(lists: RegExp, text: string): readonly Named[] {
  return [...text.matchAll(lists)].flatMap(({ groups }) =>
    (groups?.['names'] ?? '')
      .split(',')
      .map((name) => name.trim().replace(/^type /, ''))
      .filter((name) => name !== '')
      .map((name) => {
        const [was = '', is = was] = name.split(' as ');
        return { was, is, from: groups?.['from'] ?? '' };
      }),
  );
}

const read = new Map<string, readonly string[]>();

function linesOf(file: string): readonly string[] {
  const known = read.get(file) ?? readFileSync(file, 'utf8').split('\n');
  read.set(file, known);
  return known;
}
