import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { allows, fitsPattern, isExpired, mayActFor, tokenProblem } from './access.ts';

describe('the holders of a token', () => {
  it.each([
    ['agent:*', 'agent:7', true],
    ['agent:*', 'agent:', true],
    ['agent:*', 'agents:7', false],
    ['agent:7', 'agent:7', true],
    ['agent:7', 'agent:77', false],
    ['*', 'anyone', true],
    ['ci-*-linux', 'ci-3-linux', true],
    ['ci-*-linux', 'ci-linux', false],
    ['a*b*c', 'a-b-c', true],
    ['a*b*c', 'acb', false],
    ['a*a', 'a', false],
    ['agent:.', 'agent:7', false],
  ])('%s fits %s: %s', (pattern, holder, fits) => {
    expect(fitsPattern(pattern, holder)).toBe(fits);
  });

  it('fit as a regular expression would say', () => {
    const piece = fc.string({ unit: fc.constantFrom('a', 'b', ':', '*'), maxLength: 8 });
    const holder = fc.string({ unit: fc.constantFrom('a', 'b', ':'), maxLength: 10 });
    fc.assert(
      fc.property(piece, holder, (pattern, name) => {
        const expected = new RegExp(`^${pattern.replaceAll('*', '.*')}$`, 's').test(name);
        expect(fitsPattern(pattern, name)).toBe(expected);
      }),
    );
  });

  it('bind a worker to them, and nobody else', () => {
    expect(mayActFor({ holders: ['agent:1', 'agent:2'] }, 'agent:3')).toBe(false);
    expect(mayActFor({}, 'agent:3')).toBe(true);
    expect(tokenProblem({ name: 'x', role: 'administrator', holders: ['a'] })).toContain('for the role "worker"');
  });
});

describe('a token', () => {
  it('is refused from the moment that it expires', () => {
    expect([99, 100, 101].map((now) => isExpired({ expiresAt: 100 }, now))).toEqual([false, true, true]);
    expect(isExpired({}, Number.MAX_SAFE_INTEGER)).toBe(false);
  });

  it('of a viewer does not work, and that of a worker does not administer', () => {
    expect(allows('viewer', 'worker')).toBe(false);
    expect(allows('worker', 'administrator')).toBe(false);
    expect(allows('administrator', 'viewer')).toBe(true);
  });

  it.each([
    [{ name: '', role: 'viewer' }, 'name is empty'],
    [{ name: 'x', role: 'root' }, 'role is "root"; expected "viewer" or "worker" or "administrator"'],
    [{ name: 'x', role: 'worker', ttlMs: -1 }, 'ttlMs is -1'],
    [{ name: 'x', role: 'worker', holders: [] }, 'holders is []'],
    [{ name: 'x', role: 'worker', holders: ['\n'] }, 'unprintable'],
  ])('with wrong terms is not made: %j', (terms, told) => {
    expect(tokenProblem(terms)).toContain(told);
  });
});
