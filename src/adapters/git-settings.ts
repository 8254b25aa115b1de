/**
 * Reads the parts of a repository's configuration that matter for inspecting it: filters, which are programs, and whether
 * objects are fetched when they are first needed.
 */

/** For `git config -z --show-scope --get-regexp`. */
export const MINDED =
  '^(filter\\..+\\.(clean|process|required)|extensions\\.partialclone|remote\\..+\\.(promisor|partialclonefilter))$';

export interface GitSettings {
  /** Filters that the repository's own configuration names or changes. Filters of the user and the system are not included. */
  readonly ownFilters: readonly string[];
  readonly isPartialClone: boolean;
}

export function parseSettings(text: string): GitSettings {
  const words = text.split('\0');
  const settings = words.flatMap((scope, at) => {
    if (at % 2 === 1 || words[at + 1] === undefined) return [];
    const [key = '', ...value] = (words[at + 1] as string).split('\n');
    return [{ isOwn: scope === 'local' || scope === 'worktree', key, value: value.join('\n') }];
  });
  const filters = settings.filter(({ key }) => key.startsWith('filter.'));
  const before = new Set(filters.filter(({ isOwn }) => !isOwn).map(({ key, value }) => `${key}\n${value}`));
  const own = filters.filter(({ isOwn, key, value }) => isOwn && !before.has(`${key}\n${value}`));
  return {
    ownFilters: [...new Set(own.map(({ key }) => key.slice('filter.'.length, key.lastIndexOf('.'))))],
    isPartialClone: settings.some(({ key, value }) => !key.startsWith('filter.') && !/^(false|no|off|0)$/i.test(value)),
  };
}

/** Options that keep git from running these filters. An empty `process` also keeps it from running `clean`. */
export function withoutFilters(names: readonly string[]): readonly string[] {
  return names.flatMap((name) =>
    [`filter.${name}.process=`, `filter.${name}.clean=`, `filter.${name}.required=false`].flatMap((setting) => [
      '-c',
      setting,
    ]),
  );
}

/** `GIT_NO_LAZY_FETCH` came with 2.45, and with these patches of older versions. */
const PATCHED: Readonly<Record<number, number>> = { 39: 4, 40: 2, 41: 1, 42: 2, 43: 4, 44: 1 };

/** Whether this version of git obeys `GIT_NO_LAZY_FETCH`. `git version 2.39.5` */
export function canLeaveUnfetched(version: string): boolean {
  const [, major, minor, patch] = /(\d+)\.(\d+)(?:\.(\d+))?/.exec(version) ?? [];
  if (major === undefined || Number(major) < 2) return false;
  if (Number(major) > 2 || Number(minor) >= 45) return true;
  return Number(patch ?? 0) >= (PATCHED[Number(minor)] ?? Number.POSITIVE_INFINITY);
}
