import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Document, MOST_TOLD, readDocument, toldAll } from './document.ts';
import { LARGEST_BYTES } from './text.ts';

async function documentOf(text: string | Uint8Array): Promise<Document> {
  const read = await readDocument(text, 'f.yaml');
  if (!read.ok) throw new Error(toldAll('f.yaml', read.problems).join('\n'));
  return read.document;
}

async function valueOf(text: string | Uint8Array): Promise<unknown> {
  return (await documentOf(text)).value;
}

async function toldOf(text: string | Uint8Array): Promise<readonly string[]> {
  const read = await readDocument(text, 'f.yaml');
  return read.ok ? [] : toldAll('f.yaml', read.problems);
}

describe('what is written is what is read', () => {
  test.each<[string, string, unknown]>([
    ['YAML', 'a: 1\nb: [x, "y"]\nc:\n  - d: null\n', { a: 1, b: ['x', 'y'], c: [{ d: null }] }],
    ['JSON, tabs and all', '{\n\t"a": [1, true],\n\t"b/\\u0041": "\\/"\n}', { a: [1, true], 'b/A': '/' }],
    ['a byte order mark and Windows line ends', '\uFEFFa: 1\r\nb: |\r\n  x\r\n  y\r\n', { a: 1, b: 'x\ny\n' }],
    ['words that older YAML took for truths', '[yes, no, on, off, y, n]', ['yes', 'no', 'on', 'off', 'y', 'n']],
    ['truths and nothing', '[true, false, null, ~]', [true, false, null, null]],
    ['a time and a version are text', '[12:30:45, 2026-01-01, 1.2.3]', ['12:30:45', '2026-01-01', '1.2.3']],
    ['keys that are no words', '{1: a, true: b, null: c}', { 1: 'a', true: 'b', null: 'c' }],
    ['an alias', 'a: &x {b: [1]}\nc: *x', { a: { b: [1] }, c: { b: [1] } }],
    ['an anchor that is given again', 'a: &x 1\nb: *x\nc: &x 2\nd: *x', { a: 1, b: 1, c: 2, d: 2 }],
    ['comments and folded text', '# one\na: >\n  x\n  y\n# two\n', { a: 'x y\n' }],
    ['quoted numbers are text', '[\'0755\', "1.10"]', ['0755', '1.10']],
  ])('%s', async (_, text, value) => {
    expect(await valueOf(text)).toEqual(value);
  });

  test('keys that every object has are keys like any other', async () => {
    const value = (await valueOf('__proto__: {admin: true}\nconstructor: x')) as Record<string, unknown>;
    expect(Object.keys(value)).toEqual(['__proto__', 'constructor']);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(value['admin']).toBeUndefined();
  });

  test('whatever JSON says', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ maxDepth: 4 }), async (json) => {
        const text = JSON.stringify(json);
        // These are not taken silently for another number, or for nothing.
        fc.pre(!/[\ud800-\udfff\x7f-\x9f\ufffe\uffff]|\d[eE]|-0\b/.test(text) && text !== 'null');
        fc.pre(!hasLargeNumber(json));
        expect(await valueOf(text)).toEqual(JSON.parse(text));
      }),
    );
  });
});

describe('a mistake is reported with its line and column, in plain words', () => {
  test.each<[string, string, string]>([
    ['nothing', '', 'f.yaml:1:1: there is nothing in it'],
    ['nothing but a remark', '# later\n', 'f.yaml:1:1: there is nothing in it'],
    ['a key twice', 'a: 1\nb: 2\na: 3', 'f.yaml:3:1: the key "a" is there twice'],
    ['a key twice, once quoted', '{a: 1, "a": 3}', 'f.yaml:1:8: the key "a" is there twice'],
    ['a tab', 'a:\n\tb: 1', 'f.yaml:2:1: a tab indents this line; expected spaces'],
    ['an open quote', 'a: 1\nb: "x\nc: 1', 'f.yaml:2:4: the quote that begins here is not closed'],
    [
      'an open bracket',
      'a: [1, 2\nb: 1',
      'f.yaml:2:1: a [ before this is not closed with ], or what is in it is not indented',
    ],
    [
      'a colon in text',
      'run: echo: x',
      'f.yaml:1:6: a second "key: value" in one line; text with ": " in it goes between quotes',
    ],
    ['a key too far left', 'a:\n  - b: 1\n c: 2', 'f.yaml:3:2: this key is not indented like those before it'],
    [
      'a variable between brackets',
      'a: [ { lockFree: ${BRANCH} } ]\nb: 1\nc: 2',
      'f.yaml:1:18: between [ ] or { }, ${…} goes between quotes',
    ],
    ['reserved', 'a: @x', 'f.yaml:1:4: text cannot begin with @; it goes between quotes'],
    [
      'half in quotes',
      'a: "x" y',
      'f.yaml:1:8: there is more text after the end of the value; the whole of it goes between quotes',
    ],
    [
      'an unknown alias',
      'a: 1\nb: *.js',
      'f.yaml:2:4: *.js has no &.js before it; text that begins with * goes between quotes',
    ],
    ['an alias to itself', 'a: &x\n  b: *x', 'f.yaml:2:6: *x is inside of what it stands for'],
    [
      'a merge',
      'a: &x {b: 1}\nc:\n  <<: *x',
      'f.yaml:3:3: << is not part of YAML 1.2; expected an alias for a whole value, such as *name',
    ],
    ['a tag', 'a: !secret x', 'f.yaml:1:4: tags (!name) are not accepted; text that begins with ! goes between quotes'],
    [
      'a known tag',
      'a: !!str 5',
      'f.yaml:1:10: the tag tag:yaml.org,2002:str is not accepted; text goes between quotes',
    ],
    [
      'another version of YAML',
      '%YAML 1.1\n---\na: yes',
      'f.yaml:1:1: the line %YAML 1.1 is a directive; expected YAML 1.2 without any',
    ],
    ['two documents', 'a: 1\n---\nb: 2', 'f.yaml:3:1: a second document begins; expected one'],
    ['a list as a key', '? [a]\n: b', 'f.yaml:1:3: a key is no text; expected keys that are text'],
    [
      'a number with a zero before it',
      'a: 0755',
      'f.yaml:1:4: 0755 would be read as the number 755; write "0755" if the text is meant',
    ],
    ['a version', 'a: 20.10', 'f.yaml:1:4: 20.10 would be read as the number 20.1; write "20.10" if the text is meant'],
    [
      'a number beyond all that are exact',
      'a: 9007199254740993',
      'f.yaml:1:4: 9007199254740993 is too large for a number; write "9007199254740993" if the text is meant',
    ],
    ['no number', 'a: .nan', 'f.yaml:1:4: .nan would be read as the number NaN; write ".nan" if the text is meant'],
    [
      'a NUL',
      'a: 1\nb: x\0y',
      'f.yaml:2:5: here is the character U+0000, which nobody can see; in text it is written as an escape between double quotes',
    ],
    [
      'the line ends of a dead system',
      'a: 1\rb: 2',
      'f.yaml:1:5: a line ends with CR alone; expected LF, or CR and LF',
    ],
    [
      'a bad escape',
      'a: "\\q"',
      'f.yaml:1:5: \\q is no escape; a backslash in double quotes is \\\\, and in single quotes just \\',
    ],
  ])('%s', async (_, text, told) => {
    expect(await toldOf(text)).toEqual([told]);
  });

  test('another encoding', async () => {
    expect(await toldOf(new Uint8Array([0xff, 0xfe, 0x61, 0]))).toEqual([
      'f.yaml:1:1: it is not UTF-8; expected text in UTF-8',
    ]);
  });

  test('every mistake, in their order, but no flood', async () => {
    const lines = Array.from({ length: 30 }, (_, place) => `k${place}: 1\nk${place}: 2`).join('\n');
    const told = await toldOf(lines);
    expect(told).toHaveLength(MOST_TOLD + 1);
    expect(told[1]).toBe('f.yaml:4:1: the key "k1" is there twice');
    expect(told.at(-1)).toBe('f.yaml: and 10 more');
  });
});

describe('a file that was made to do harm', () => {
  test('cannot be huge', async () => {
    expect(await toldOf(`# ${'x'.repeat(LARGEST_BYTES)}`)).toEqual([
      `f.yaml:1:1: it has more than ${LARGEST_BYTES} bytes, and no more are accepted`,
    ]);
  });

  test('cannot become huge by aliases', async () => {
    const laughs = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
    for (let level = 1; level < 30; level++) {
      laughs.push(
        `a${level}: &a${level} [${Array(10)
          .fill(`*a${level - 1}`)
          .join(', ')}]`,
      );
    }
    const [told] = await toldOf(laughs.join('\n'));
    expect(told).toMatch(/^f\.yaml:1:1: its aliases expand to [\d.e+]+ values; expected at most 50000$/);
  });

  test('cannot be deep by aliases', async () => {
    const chain = ['a0: &a0 [x]'];
    for (let level = 1; level < 310; level++) chain.push(`a${level}: &a${level} [*a${level - 1}]`);
    expect(await toldOf(chain.join('\n'))).toEqual([
      'f.yaml:1:1: its aliases are nested 312 deep; expected at most 300',
    ]);
  });

  test.each(['[', '{a: ', '- ', '? ', '&a [', '!x {'])(
    'cannot be so deep that the process falls over: %s',
    async (piece) => {
      const [told] = await toldOf(piece.repeat(200_000));
      expect(told).toMatch(/^f\.yaml:1:\d+: it is nested too deep$/);
    },
  );

  test.each(['"', '&a ', '%A\n', '---\n', ',', '- a\n', 'a', '\n'])('cannot take long: %j', async (piece) => {
    expect((await toldOf(piece.repeat(Math.floor(LARGEST_BYTES / piece.length)))).length).toBeLessThanOrEqual(21);
  });

  test('never makes the reader throw, whatever is in it', async () => {
    const yamlish = fc
      .array(
        fc.constantFrom(
          'a',
          ': ',
          '- ',
          '\n',
          '  ',
          '[',
          ']',
          '{',
          '}',
          ',',
          '"',
          "'",
          '&x ',
          '*x',
          '!t ',
          '|',
          '>',
          '#',
          '---',
          '%',
          '?',
          '\t',
          '0',
          '<<',
          '\\',
          '\r\n',
        ),
        { maxLength: 40 },
      )
      .map((pieces) => pieces.join(''));
    await fc.assert(
      fc.asyncProperty(fc.oneof(yamlish, fc.string({ unit: 'binary' })), async (text) => {
        const read = await readDocument(text, 'f');
        if (read.ok) JSON.stringify(read.document.value);
        else expect(read.problems.length).toBeGreaterThan(0);
      }),
      { numRuns: 1000 },
    );
  });
});

describe('places', () => {
  const text = 'name: x\nphases:\n  - name: a\n    pre: &g { lockFree: m }\n  - name: b\n    post: *g\n';

  test.each<[string, readonly (string | number)[], string]>([
    ['the whole', [], '1:1'],
    ['a key', ['phases'], '2:1'],
    ['an item', ['phases', 1], '5:5'],
    ['a key in an item', ['phases', 0, 'pre'], '4:5'],
    ['inside braces', ['phases', 0, 'pre', 'lockFree'], '4:15'],
    ['through an alias', ['phases', 1, 'post', 'lockFree'], '4:15'],
    ['what is missing is where it should be', ['phases', 1, 'run'], '5:5'],
    ['what is not a map', ['name', 'first', 0], '1:1'],
    ['no such item', ['phases', 7], '2:1'],
  ])('%s', async (_, path, place) => {
    const { line, column } = (await documentOf(text)).placeOf(path);
    expect(`${line}:${column}`).toBe(place);
  });
});

function hasLargeNumber(json: unknown): boolean {
  if (typeof json === 'number') return Number.isInteger(json) && !Number.isSafeInteger(json);
  return typeof json === 'object' && json !== null && Object.values(json).some(hasLargeNumber);
}
