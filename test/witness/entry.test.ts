import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  canonical,
  emptyChain,
  entered,
  entryHash,
  entryProblem,
  entryText,
  nextEntry,
  NO_ENTRY,
  plain,
  type WitnessedCommand,
} from '../../src/core/witness/index.ts';
import { bytesIn } from '../../src/core/utf8.ts';
import { escapeOf } from '../../src/core/witness/canonical.ts';
import { sha256 } from '../../src/host/index.ts';

const text = fc.string({ unit: 'binary', maxLength: 12 });
const json = fc.jsonValue({ stringUnit: 'binary', maxDepth: 4 });

const commands: fc.Arbitrary<WitnessedCommand> = fc.record(
  {
    actor: text,
    component: text,
    trace: text,
    command: text,
    outcome: text,
    events: fc.array(text, { maxLength: 3 }),
    waitedMs: fc.double({ noNaN: true, noDefaultInfinity: true }),
    detail: fc.dictionary(text, json, { maxKeys: 3 }),
  },
  { requiredKeys: ['actor', 'component', 'command', 'outcome', 'events'] },
) as fc.Arbitrary<WitnessedCommand>;

const written = fc.record({
  revision: fc.nat(),
  time: fc.nat(),
  commands: fc.array(commands, { maxLength: 3 }),
});

/** Half a surrogate pair may be anywhere in it. */
const brokenText = fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) });

describe('canonical JSON', () => {
  it('is what the package canonicalize writes, for every JSON value', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(canonical(value)).toBe(canonicalize(value));
      }),
    );
  });

  it('says every number as RFC 8785 asks', () => {
    const numbers = [0, -0, 1e21, 1e20, 1e-6, 1e-7, 5e-324, 1.7976931348623157e308, 333333333.33333329, 4.5, 2e-3];
    expect(numbers.map(canonical)).toEqual(numbers.map((number) => canonicalize(number)));
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
        expect(canonical(number)).toBe(canonicalize(number));
      }),
    );
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, 'a\ud800', { '\udc00': 1 }, [undefined], () => 1, 1n])(
    'refuses %s, which has no canonical form',
    (value) => {
      expect(() => canonical(value)).toThrow(TypeError);
    },
  );

  it('refuses what contains itself, or is nested too deep, before the stack is full', () => {
    const circle: unknown[] = [];
    circle.push(circle);
    expect(() => canonical(circle)).toThrow('nested more than');
  });

  it('exists for whatever a caller may pass as metadata, once it is made plain', () => {
    const value = fc.oneof(brokenText, fc.dictionary(brokenText, fc.array(brokenText)), fc.anything());
    fc.assert(
      fc.property(value, (value) => {
        let json: unknown;
        try {
          json = plain(value);
        } catch {
          return; // JSON.stringify refuses it too: a bigint, or an object without a prototype's methods
        }
        if (json !== undefined) expect(JSON.parse(canonical(json))).toEqual(json);
      }),
    );
  });
});

describe('an entry', () => {
  it('has the hash of what canonicalize writes of the rest, whatever it contains', () => {
    fc.assert(
      fc.property(text, written, (resource, write) => {
        const { entry, text, head } = nextEntry(emptyChain(resource), write, sha256);
        const { hash, ...rest } = entry;
        const bytes = Buffer.from(canonicalize(rest) ?? '', 'utf8');
        expect(hash).toBe(createHash('sha256').update(bytes).digest('hex'));
        expect(text).toBe(canonicalize(entry));
        expect(entryText(entry)).toBe(text);
        expect(head).toEqual({ resource, seq: 1, hash });
      }),
    );
  });

  it('reads back as it was written, and has the same hash then', () => {
    fc.assert(
      fc.property(
        text.filter((name) => name !== ''),
        written,
        (resource, write) => {
          const { entry, text } = nextEntry(emptyChain(resource), write, sha256);
          const back = JSON.parse(text) as typeof entry;
          expect(entryProblem(back)).toBeUndefined();
          expect(entryHash(back, sha256)).toBe(entry.hash);
          for (const line of [text, JSON.stringify(back, undefined, '\t')])
            expect(entryHash(back, sha256, escapeOf(line))).toBe(entry.hash);
        },
      ),
    );
  });

  it('names the entry before it, and the first names none', () => {
    const write = { revision: 7, time: 1000, commands: [] };
    const first = nextEntry(emptyChain('lock/main'), write, sha256);
    const second = nextEntry(first.head, write, sha256);
    expect(first.entry).toMatchObject({ seq: 1, previous: NO_ENTRY });
    expect(second.entry).toMatchObject({ seq: 2, previous: first.entry.hash });
    const trimmed = { seq: 1, hash: first.entry.hash };
    expect(nextEntry({ ...second.head, trimmed }, write, sha256).head.trimmed).toEqual(trimmed);
  });

  const good = {
    ...nextEntry(emptyChain('lock/main'), { revision: 7, time: 1000, commands: [] }, sha256).entry,
    commands: [{ actor: 'a', component: 'lock', command: 'acquire', outcome: 'acquired', events: ['lock:acquired'] }],
  };

  const bad: [problem: string, value: unknown][] = [
    ['null, not an object', null],
    ['v is 2', { ...good, v: 2 }],
    ['resource is ""', { ...good, resource: '' }],
    ['seq is 0', { ...good, seq: 0 }],
    ['seq is 1.5', { ...good, seq: 1.5 }],
    ['revision is "7"', { ...good, revision: '7' }],
    ['time is null', { ...good, time: null }],
    ['previous is "AAAA', { ...good, previous: 'A'.repeat(64) }],
    ['hash is "short"', { ...good, hash: 'short' }],
    ['commands is {}', { ...good, commands: {} }],
    ['"more" is no field', { ...good, more: 1 }],
    ['commands[0]: it is 1', { ...good, commands: [1] }],
    ...(['actor', 'component', 'command', 'outcome', 'trace', 'waitedMs', 'events', 'detail'] as const).map(
      (field): [string, unknown] => [
        `${field} is true`,
        { ...good, commands: [{ ...good.commands[0], [field]: true }] },
      ],
    ),
    ['events has 1', { ...good, commands: [{ ...good.commands[0], events: [1] }] }],
    ['"more" is no field', { ...good, commands: [{ ...good.commands[0], more: 1 }] }],
  ];
  it.each(bad)('is not read if %s', (problem, value) => {
    expect(entryProblem(value)).toContain(problem);
  });
});

describe('a value that is entered', () => {
  it('stays as it is up to 1 KiB', () => {
    const value = { note: 'é'.repeat(506) };
    expect(bytesIn(canonical(value))).toBe(1023);
    expect(entered(value, sha256)).toEqual(value);
  });

  it('is its hash beyond that, the same for the same value', () => {
    const value = { b: 'é'.repeat(507), a: 1 };
    const hash = createHash('sha256')
      .update(canonicalize(value) as string)
      .digest('hex');
    expect(entered(value, sha256)).toEqual({ sha256: hash, bytes: bytesIn(canonicalize(value) as string) });
  });

  it('is its salted hash if it is sensitive', () => {
    const salt = 'ab'.repeat(16);
    const hash = createHash('sha256').update(`${salt}"secret"`).digest('hex');
    expect(entered('secret', sha256, salt)).toEqual({ sha256: hash, bytes: 8, salt });
  });

  it('is nothing where JSON says nothing', () => {
    expect(entered(undefined, sha256)).toBeUndefined();
  });
});
