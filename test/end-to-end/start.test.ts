import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { built, ENTRY, type Ended, Place } from '../support/run-processes.ts';

let place: Place;

beforeAll(built);

beforeEach(() => {
  place = new Place();
});

afterEach(() => place.leave());

describe('the code that is kept for the next start', () => {
  const start = (env: NodeJS.ProcessEnv = {}): Promise<Ended> =>
    place.start(process.execPath, [ENTRY, 'who'], { stdin: '', env: { XDG_CACHE_HOME: place.path('cache'), ...env } })
      .ended;
  const kept = (): string => {
    const directory = place.path('cache/signalbox');
    const [file = 'none'] = readdirSync(directory);
    return join(directory, file);
  };

  beforeEach(() => mkdirSync(place.path('cache')));

  it('is of this very build, and changes nothing of what is printed', async () => {
    const [first, second] = [await start(), await start()];
    expect(second).toEqual(first);
    expect(first.code).toBe(0);
    expect(readdirSync(place.path('cache/signalbox'))).toHaveLength(1);
    const text = readFileSync(ENTRY, 'utf8');
    const [, hash = ''] = /who-([0-9a-f]{16})-/.exec(kept()) ?? [];
    expect(text).toContain(hash);
  });

  it('is added to by later starts, because the first may have ended before it did anything', async () => {
    const help = place.start(process.execPath, [ENTRY, 'who', '--help'], {
      stdin: '',
      env: { XDG_CACHE_HOME: place.path('cache') },
    });
    expect((await help.ended).code).toBe(0);
    const sizes = [statSync(kept()).size];
    for (let nth = 0; nth < 3; nth++) {
      expect((await start()).code).toBe(0);
      sizes.push(statSync(kept()).size);
    }
    expect(sizes[1]).toBeGreaterThan(sizes[0] ?? 0);
    // Not for ever: each addition takes longer than a start.
    const last = statSync(kept()).mtimeMs;
    expect((await start()).code).toBe(0);
    expect(statSync(kept()).mtimeMs).toBe(last);
  });

  it.each(['the beginning', 'the middle', 'the end'])('is not used where %s of it is damaged', async (where) => {
    await start();
    const code = readFileSync(kept());
    const at = { 'the beginning': 20, 'the middle': Math.floor(code.length / 2) + 4096, 'the end': code.length - 4000 }[
      where
    ];
    code.fill(0, at, (at ?? 0) + 3000);
    writeFileSync(kept(), code);
    expect((await start()).code).toBe(0);
    rmSync(kept());
  });

  it('is done without where it cannot be kept', async () => {
    expect((await start({ XDG_CACHE_HOME: '/proc/nowhere' })).code).toBe(0);
    expect((await start({ XDG_CACHE_HOME: 'relative' })).code).toBe(0);
    expect(readdirSync(place.directory)).not.toContain('relative');
  });
});

describe('a package that was changed after it was installed', () => {
  const path = (...names: readonly string[]): string => join(place.directory, 'package', ...names);
  const help = (): Promise<Ended> =>
    place.start(process.execPath, [path('bin', 'signalbox.cjs'), 'who', '--help'], {
      stdin: '',
      env: { XDG_CACHE_HOME: place.path('cache') },
    }).ended;
  const change = (file: string, how: (text: string) => string): void => {
    writeFileSync(file, how(readFileSync(file, 'latin1')), 'latin1');
    // However fast the test is.
    utimesSync(file, 1, 1);
  };
  let chunk: string;
  let seldom: string;

  beforeEach(() => {
    const dist = join(dirname(ENTRY), '..');
    const names = ['common', 'seldom'].map((wanted) =>
      readdirSync(join(dist, 'chunks')).find((one) => one.startsWith(`${wanted}-`) && one.endsWith('.js')),
    );
    [chunk = '', seldom = ''] = names.map((name = '') => path('chunks', name));
    const parts = ['bin', ...names.map((name = '') => join('chunks', name))];
    for (const part of parts) cpSync(join(dist, part), path(part), { recursive: true });
    mkdirSync(place.path('cache'));
  });

  it.each([
    ['converted line ends', (text: string) => text.replaceAll('\n', '\r\n')],
    ['a patch', (text: string) => `${text}\n// patched\n`],
    ['a patch that left its length as it was', (text: string) => `;${text.slice(0, -1)}`],
  ])('is refused with %s in the library, and says what to do', async (_, how) => {
    change(chunk, how);
    await refused(chunk);
  });

  it('is refused with a patch in what it may use later, before it does anything', async () => {
    change(seldom, (text) => `${text}\n// patched\n`);
    await refused(seldom);
  });

  const refused = async (changed: string): Promise<void> => {
    const { code, stdout, stderr } = await help();
    expect({ code, stdout }).toEqual({ code: 70, stdout: '' });
    expect(stderr).toContain(`signalbox: ${changed} was changed after it was built`);
    expect(stderr).toContain('install it again');
  };

  it('says which file is missing, and what to do', async () => {
    rmSync(chunk);
    const { code, stderr } = await help();
    expect(code).toBe(70);
    expect(stderr).toContain(chunk);
    expect(stderr).toContain('install it again');
    expect(stderr).not.toContain('    at ');
  });

  it('runs what a patch of the command line says, and not the code that was kept before it', async () => {
    expect((await help()).stdout).toContain('print JSON, for programs');
    change(path('bin', 'main.cjs'), (text) => text.replace('print JSON, for programs', 'print JSON, for PROGRAMS'));
    expect((await help()).stdout).toContain('print JSON, for PROGRAMS');
  });
});

describe('what is printed', () => {
  const shell = (script: string): Promise<Ended> => {
    const path = { PATH: `${dirname(process.execPath)}:${process.env['PATH']}` };
    return place.start('bash', ['-c', script], { stdin: '', env: path }).ended;
  };

  it('by others into the same pipe is not lost while a run waits or works', async () => {
    const work = `sh -c 'sleep 0.2; head -c 1000000 /dev/zero'`;
    const { stdout } = await shell(
      `printf '1\\n2\\n3\\n' | xargs -P3 -I{} "$NODE" "$ENTRY" run --lock big -- ${work} | (sleep 1.5; wc -c)`,
    );
    expect(stdout.trim()).toBe('3000000');
  });

  it('and cannot be written is an error, and a token that nobody got is given back', async () => {
    const { code, stderr } = await shell('"$NODE" "$ENTRY" lock acquire full --holder me > /dev/full');
    expect(code).toBe(75);
    expect(stderr).toBe('signalbox: lock/full: the token could not be printed, so the hold was released\n');
    expect((await shell('"$NODE" "$ENTRY" lock acquire had --holder me --shared')).code).toBe(0);
    const again = await shell('"$NODE" "$ENTRY" lock acquire had --holder me > /dev/full');
    expect([again.code, again.stderr]).toEqual([75, expect.stringContaining('me still has the hold that it had')]);
    expect((await shell('"$NODE" "$ENTRY" lock release had --holder me')).code).toBe(0);
    expect((await shell('"$NODE" "$ENTRY" who > /dev/full')).code).toBe(69);
    expect(await (await place.open()).lock('full').isFree()).toBe(true);
  });
});

describe('what is loaded', () => {
  const file = (name: string): string => readFileSync(join(dirname(ENTRY), name), 'utf8');

  it('has no YAML in it until a YAML file is read, and no etcd until one is opened', () => {
    expect(file('rest.cjs')).toContain('./yaml.cjs');
    expect(file('yaml.cjs')).toContain('TAB_AS_INDENT');
    expect(file('main.cjs') + file('rest.cjs')).not.toContain('TAB_AS_INDENT');
    expect(file('main.cjs')).toContain('./etcd.cjs');
  });

  it('has in it what the library has only once: the command line takes that out of the chunk', () => {
    const chunks = join(dirname(ENTRY), '..', 'chunks');
    // Of messages; `run` does nothing with tasks.
    const texts = {
      common: 'this signalbox was closed; open another one',
      seldom: 'died or lost the claim while working on it',
    };
    for (const [name, text] of Object.entries(texts)) {
      const found = readdirSync(chunks).filter((one) => one.startsWith(`${name}-`) && one.endsWith('.js'));
      expect(found).toHaveLength(1);
      expect(file('signalbox.cjs')).toContain(found[0]);
      expect(readFileSync(join(chunks, found[0] ?? ''), 'utf8')).toContain(text);
      expect(file('main.cjs') + file('rest.cjs')).not.toContain(text);
    }
  });

  it('comes with the licences of what it is made of', () => {
    expect(file('LICENSES')).toMatch(/^commander \d/m);
  });
});
