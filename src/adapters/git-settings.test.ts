import { describe, expect, test } from 'vitest';
import { canLeaveUnfetched, parseSettings, withoutFilters } from './git-settings.ts';

/** As `git config -z --show-scope` prints them. */
const printed = (...settings: readonly (readonly [scope: string, key: string, value: string])[]): string =>
  settings.map(([scope, key, value]) => `${scope}\0${key}\n${value}\0`).join('');

describe('the filters that are not run', () => {
  test('are those of the repository, and not those of the user', () => {
    const text = printed(
      ['global', 'filter.lfs.process', 'git-lfs filter-process'],
      ['command', 'filter.mine.clean', 'x'],
      ['local', 'filter.crypt.clean', 'git-crypt clean'],
      ['worktree', 'filter.a.b.clean', 'x'],
    );
    expect(parseSettings(text).ownFilters).toEqual(['crypt', 'a.b']);
    expect(withoutFilters(['crypt'])).toEqual([
      ...['-c', 'filter.crypt.process=', '-c', 'filter.crypt.clean=', '-c', 'filter.crypt.required=false'],
    ]);
  });

  test('are those of the user too if the repository changes them, and not if it says the same', () => {
    const users = ['global', 'filter.lfs.clean', 'git-lfs clean -- %f'] as const;
    expect(parseSettings(printed(users, ['local', 'filter.lfs.clean', 'git-lfs clean -- %f'])).ownFilters).toEqual([]);
    expect(parseSettings(printed(users, ['local', 'filter.lfs.clean', 'evil'])).ownFilters).toEqual(['lfs']);
    expect(parseSettings(printed(users, ['local', 'filter.lfs.process', 'evil'])).ownFilters).toEqual(['lfs']);
  });
});

test('a partial clone is known by its remote', () => {
  expect(parseSettings('').isPartialClone).toBe(false);
  expect(parseSettings(printed(['local', 'filter.x.clean', 'x'])).isPartialClone).toBe(false);
  expect(parseSettings(printed(['local', 'remote.origin.promisor', 'true'])).isPartialClone).toBe(true);
  expect(parseSettings(printed(['local', 'remote.origin.promisor', 'false'])).isPartialClone).toBe(false);
  expect(parseSettings(printed(['local', 'extensions.partialclone', 'origin'])).isPartialClone).toBe(true);
  // A key alone is true.
  expect(parseSettings('local\0remote.origin.promisor\0').isPartialClone).toBe(true);
});

test.each([
  ['git version 2.39.5', true],
  ['git version 2.39.3', false],
  ['git version 2.38.9', false],
  ['git version 2.43.4.windows.1', true],
  ['git version 2.44.0', false],
  ['git version 2.45.0', true],
  ['git version 2.50.1 (Apple Git-155)', true],
  ['git version 3.0.0', true],
  ['git version 1.9.1', false],
  ['nobody knows', false],
])('%s can be kept from fetching: %s', (version, can) => {
  expect(canLeaveUnfetched(version)).toBe(can);
});
