// What the documentation refers to is there: pages and their headings, files, tests, and what ARCHITECTURE.md names in the
// source. A page that is right today must not become wrong unnoticed.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import { root, sourcesUnder } from '../house/sources.ts';

const pages = ['README.md', 'ARCHITECTURE.md', ...markdownIn('docs')];

describe('the documentation', () => {
  it('links only to pages and headings that exist', () => {
    expect(pages.flatMap((page) => brokenLinks(page, read(page)))).toEqual([]);
  });

  it('lists every decision', () => {
    const index = read('docs/decisions/README.md');
    const decisions = markdownIn('docs/decisions').map((page) => posix.basename(page));
    expect(decisions.filter((name) => name !== 'README.md' && !index.includes(`(${name})`))).toEqual([]);
  });

  it('cites for each guarantee only tests that exist', () => {
    const text = read('docs/guarantees.md');
    expect(citedTests(text).length).toBeGreaterThan(0);
    expect(citedTests(text).flatMap(missingTest)).toEqual([]);
  });

  it('gives each guarantee an id of its own and at least one test', () => {
    const sections = read('docs/guarantees.md').split(/^## /m).slice(1);
    const ids = sections.map((section) => /^(G\d+) /.exec(section)?.[1]).filter((id) => id !== undefined);
    expect(ids).toEqual(ids.map((_, place) => `G${place + 1}`));
    const bare = sections.filter((section) => /^G\d+ /.test(section) && citedTests(section).length === 0);
    expect(bare.map((section) => section.split('\n')[0])).toEqual([]);
  });

  it('never sends SIGNALBOX_TOKEN to a server as its secret: that is the token of a hold', () => {
    const sent = /bearer\W+SIGNALBOX_TOKEN\b|bearer_token_env_var = "SIGNALBOX_TOKEN"/i;
    expect(pages.filter((page) => sent.test(read(page)))).toEqual([]);
  });

  it('names in ARCHITECTURE.md only what is in the source', () => {
    const sources = sourcesUnder('src');
    const text = read('ARCHITECTURE.md');
    const members = [...text.matchAll(/`(?:([A-Z]\w+)\.)?(#?\w+)`/g)].filter(
      ([, owner, member]) => owner ?? member?.startsWith('#'),
    );
    const unknown = members.filter(([, owner, member]) => {
      const name = member as string;
      const inside = sources.filter(
        ({ text }) => owner === undefined || new RegExp(`(class|interface) ${owner}\\b`).test(text),
      );
      return !inside.some(({ text }) => new RegExp(`(?<![\\w#])${name}\\b`).test(text));
    });
    expect(members.length).toBeGreaterThan(0);
    expect(unknown.map(([whole]) => whole)).toEqual([]);
    const files = [...text.matchAll(/`((?:src|core|runtime|store|test)\/[\w./-]+\.ts)`/g)].map(
      ([, file]) => file as string,
    );
    expect(files.filter((file) => !existsSync(join(root, file)) && !existsSync(join(root, 'src', file)))).toEqual([]);
  });
});

function brokenLinks(page: string, text: string): string[] {
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target]) => target as string)
    .filter((target) => !/^https?:/.test(target) && !leadsSomewhere(page, target))
    .map((target) => `${page}: ${target}`);
}

function leadsSomewhere(page: string, target: string): boolean {
  const [path = '', heading] = target.split('#');
  const file = path === '' ? page : posix.normalize(posix.join(dirname(page), path));
  if (!existsSync(join(root, file))) return false;
  return heading === undefined || headingsOf(read(file)).includes(heading);
}

/** As GitHub makes them. */
function headingsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
    (title as string)
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

interface Citation {
  readonly file: string;
  readonly test: string;
}

/** `test/runtime/lock.test.ts` “a sentence” “another sentence”. */
function citedTests(text: string): Citation[] {
  return [...text.matchAll(/`([^`]+\.ts)`((?:\s+“[^”]+”)+)/g)].flatMap(([, file, tests]) =>
    [...(tests as string).matchAll(/“([^”]+)”/g)].map(([, test]) => ({
      file: file as string,
      test: (test as string).replace(/\s+/g, ' '),
    })),
  );
}

function missingTest({ file, test }: Citation): string[] {
  const isThere = existsSync(join(root, file)) && read(file).replaceAll("\\'", "'").includes(test);
  return isThere ? [] : [`${file}: ${test}`];
}

function markdownIn(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => `${folder}/${path.replaceAll('\\', '/')}`)
    .sort();
}

function read(page: string): string {
  return readFileSync(join(root, page), 'utf8');
}
