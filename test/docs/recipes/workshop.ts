/**
 * A place to try recipes in: `signalbox` as it is installed is on the PATH, and the programs of the recipe's user (make,
 * ./deploy.sh) are stand-ins that write down when they begin and end. Whatever waits for something waits for its stdin.
 */
import { execFileSync } from 'node:child_process';
import { appendFileSync, chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { root } from '../../house/sources.ts';
import { ENTRY, Place, type Started } from '../../support/run-processes.ts';
import { recipe } from './page.ts';

export interface Trying {
  /** A directory in the workshop. */
  readonly in?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Nothing unless given; `open` leaves it to be written to. */
  readonly stdin?: string | 'open';
  /** For what cannot be as on the page: absolute paths, long times. */
  readonly with?: Readonly<Record<string, string>>;
}

export class Workshop {
  readonly place = new Place();
  readonly #bin = this.place.path('bin');
  readonly env: Readonly<Record<string, string>>;

  constructor() {
    mkdirSync(this.#bin);
    symlinkSync(ENTRY, join(this.#bin, 'signalbox'));
    writeFileSync(this.place.path('log'), '');
    this.env = {
      PATH: `${this.#bin}:${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
      HOME: this.place.directory,
      // Else every workshop would begin with code that has to be compiled anew.
      XDG_CACHE_HOME: join(root, '.cache', 'recipes'),
      LOG: this.place.path('log'),
      // A bash that takes its socket for a login from elsewhere would read what the machine has for such shells.
      SHLVL: '2',
      ...GIT,
    };
  }

  /** The recipe as printed, in a bash of its own. */
  try(name: string, trying: Trying = {}): Started {
    return this.shell(this.text(name, trying.with), trying);
  }

  shell(code: string, { in: directory = '.', env = {}, stdin = '' }: Trying = {}): Started {
    const enter = 'cd "$0" && exec bash -c "$1"';
    return this.place.start('bash', ['-c', enter, this.place.path(directory), code], {
      env: { ...this.env, ...env },
      ...(stdin !== 'open' && { stdin }),
    });
  }

  text(name: string, changes: Trying['with'] = {}): string {
    let { code } = recipe(name).block;
    for (const [printed, here] of Object.entries(changes)) {
      if (!code.includes(printed)) throw new Error(`the recipe ${name} does not contain ${printed}`);
      code = code.replaceAll(printed, here);
    }
    return code;
  }

  /** A recipe that is a file. */
  keep(name: string, file: string, changes?: Trying['with']): void {
    this.write(file, this.text(name, changes));
  }

  /** Stands for a program of the user's: a command if it has a bare name, otherwise a file. */
  standIn(file: string, body: string): void {
    this.write(file.includes('/') ? file : join(this.#bin, file), `#!/usr/bin/env bash\nset -eu\n${body}\n`);
  }

  /** A signalbox that holds nothing: what would happen without it? */
  withoutLocks(): NodeJS.ProcessEnv {
    const bin = this.place.path('without');
    this.write(join(bin, 'signalbox'), '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n');
    return { PATH: `${bin}:${this.env['PATH'] ?? ''}` };
  }

  write(file: string, text: string): void {
    const path = resolve(this.place.directory, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    chmodSync(path, 0o755);
  }

  /** A commit of one file with its own name in it. */
  commit(directory: string, name: string): void {
    appendFileSync(join(this.place.path(directory), name), `${name}\n`);
    this.git(directory, 'add', name);
    this.git(directory, 'commit', '--quiet', '-m', name);
  }

  git(directory: string, ...args: readonly string[]): string {
    const options = {
      cwd: this.place.path(directory),
      env: { ...process.env, ...this.env },
      encoding: 'utf8',
    } as const;
    return execFileSync('git', [...args], options).trim();
  }

  /** What the stand-ins wrote down. */
  get log(): readonly string[] {
    return this.place
      .read('log')
      .split('\n')
      .filter((line) => line !== '');
  }

  /** Ends what still runs, also what the shells have started: it bears the mark of this workshop. */
  async leave(): Promise<void> {
    killAll(processesWith(`LOG=${this.place.path('log')}`));
    await this.place.leave();
  }
}

export function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has gone.
    }
  }
}

export function processesWith(variable: string): readonly number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(variable);
    } catch {
      return false;
    }
  });
}

/** Not as this machine's user has set git up. */
const GIT = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'agent',
  GIT_AUTHOR_EMAIL: 'agent@example.org',
  GIT_COMMITTER_NAME: 'agent',
  GIT_COMMITTER_EMAIL: 'agent@example.org',
};

/** Of lines `begin KEY` and `end KEY`: the largest sum of what was at work at the same time. */
export function mostAtOnce(log: readonly string[], weightOf: (key: string) => number = () => 1): number {
  let now = 0;
  let most = 0;
  for (const line of log) {
    const [what, key = ''] = line.split(' ');
    if (what === 'begin') now += weightOf(key);
    if (what === 'end') now -= weightOf(key);
    most = Math.max(most, now);
  }
  return most;
}

/** Keys that were at work twice at the same time. */
export function sharedKeys(log: readonly string[]): readonly string[] {
  const keys = [...new Set(log.map((line) => line.split(' ')[1] ?? ''))];
  return keys.filter((key) => mostAtOnce(log.filter((line) => line.split(' ')[1] === key)) > 1);
}
