// What is shared is the same for everyone: nothing in it names the machine it was written on or where that machine gets
// its packages.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { root, type Source } from './sources.ts';

// By its shape and not by name: whichever registry it is, it does not belong here.
const REGISTRY = /\bregistry[.][\w-]+[.]\w+/;

/** Directories that many machines have, so that naming them tells nothing. */
const EVERYWHERE = new Set([
  ...['/', '/home', '/mnt', '/opt', '/root', '/srv', '/tmp', '/usr', '/usr/src', '/var', '/var/tmp'],
  ...['/app', '/src', '/workspace'],
]);

/** `own`: the hosts from which this machine gets its packages. */
function registryAddresses(source: Source, own: readonly string[] = []): string[] {
  const hosts = [...(REGISTRY.exec(source.text) ?? []), ...own.filter((host) => source.text.includes(host))];
  const found = [...new Set(hosts)].map((host) => `names ${host}`);
  const isLockFile = source.path.endsWith('package-lock.json');
  const resolved = isLockFile && source.text.includes('"resolved"') ? ['says where packages were downloaded'] : [];
  return [...found, ...resolved].map((what) => `${source.path} ${what}`);
}

function machinePaths(source: Source, places: readonly string[]): string[] {
  // Only where a path begins: `${base}/tmp` and `https://host/tmp` name no directory of this machine.
  const beginning = '(?<=^|[\\s\'"`(<=:,[]|file://)';
  return places
    .filter((place) => new RegExp(`${beginning}${escapeForRegExp(place)}(?![\\w-])`, 'm').test(source.text))
    .map((place) => `${source.path} contains ${place}`);
}

/** The places that tell this machine from others: where the repository and its neighbours lie, and the user's home. */
function placesOf(repository: string, home: string): string[] {
  const parent = dirname(repository);
  const neighbourhood = parent === '/' ? [] : [repository, parent];
  return [...neighbourhood, home].filter((place) => !EVERYWHERE.has(place));
}

function escapeForRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
}

/** Tracked files, and those that would be if added now. */
function sharedFiles(): Source[] {
  // Root on a clone that belongs to somebody else is refused otherwise.
  const safe = ['-c', 'safe.directory=*'];
  const listed = execFileSync('git', [...safe, 'ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  });
  return listed
    .split('\0')
    .filter((path) => path !== '' && existsSync(join(root, path)))
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

/** The registry this machine uses may be a private one. A local mirror has no name worth hiding. */
function ownRegistry(): string[] {
  const address = execFileSync('npm', ['config', 'get', 'registry'], {
    cwd: root,
    encoding: 'utf8',
    stdio: 'pipe',
  }).trim();
  if (!URL.canParse(address)) return [];
  const { hostname } = new URL(address);
  return /^(localhost|[\d.]+|\[.*\])$/.test(hostname) ? [] : [hostname];
}

describe.skipIf(!existsSync(join(root, '.git')))('what the repository shares', () => {
  it('names no package registry', () => {
    const own = ownRegistry();
    expect(sharedFiles().flatMap((source) => registryAddresses(source, own))).toEqual([]);
  });

  it('names no place on the machine it was written on', () => {
    const places = placesOf(resolve(root), homedir());
    expect(sharedFiles().flatMap((source) => machinePaths(source, places))).toEqual([]);
  });
});

describe('the check of the repository', () => {
  it('finds a registry, and a lock file with download addresses', () => {
    const host = ['registry', 'example', 'org'].join('.');
    const text = JSON.stringify({ resolved: `https://${host}/zod.tgz` });
    expect(registryAddresses({ path: 'package-lock.json', text })).toEqual([
      `package-lock.json names ${host}`,
      'package-lock.json says where packages were downloaded',
    ]);
    expect(registryAddresses({ path: 'docs/install.md', text: 'npm install signalbox' })).toEqual([]);
  });

  it('finds the repository, its neighbours and the home, but no path that merely resembles them', () => {
    const places = placesOf('/builds/signalbox', '/home/somebody');
    const found = (text: string): string[] => machinePaths({ path: 'a', text }, places);
    expect(found('see /builds/signalbox/src')).toEqual(['a contains /builds/signalbox', 'a contains /builds']);
    expect(found('first\n/builds/notes.md')).toEqual(['a contains /builds']);
    expect(found('`file:///builds/notes.md`')).toEqual(['a contains /builds']);
    expect(found('"/home/somebody/.npmrc"')).toEqual(['a contains /home/somebody']);
    expect(found('src/builds/x, ./builds/x, ${x}/builds/x, /builds-of-others, https://host/builds/1')).toEqual([]);
  });

  it('does not mind directories that many machines have', () => {
    expect(placesOf('/tmp/signalbox', '/root')).toEqual(['/tmp/signalbox']);
    expect(placesOf('/signalbox', '/root')).toEqual([]);
  });
});
