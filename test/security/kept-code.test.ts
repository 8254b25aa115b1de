/** The code that V8 made at the last start is run again only where nobody else could have put it. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { built, ENTRY, Place } from '../support/run-processes.ts';

const NOBODY = 65_534;

/** Of one length with `main.cjs`, which is all that V8 looks at; and none for the other three scripts, which are compiled then. */
const MAKE_FOREIGN = `
  const { readFileSync, writeFileSync } = require('node:fs');
  const [main, file] = process.argv.slice(1);
  const text = 'process.stdout.write("FOREIGN");process.exit(0)//'.padEnd(readFileSync(main).length);
  const script = new (require('node:vm').Script)(
    '(function (exports, require, module, __filename) {' + text + '\\n})', { filename: main });
  const made = script.createCachedData();
  const lengths = Buffer.alloc(16);
  lengths.writeUInt32LE(made.length, 8);
  const code = Buffer.concat([lengths, made]);
  writeFileSync(file, Buffer.concat([code, code, Buffer.of(9)]));`;

// Only root can be another user.
describe.skipIf(process.getuid?.() !== 0)('the code kept for the next start', () => {
  let place: Place;
  let scratch: string;
  /** Prints FOREIGN in place of everything. */
  let foreign: string;
  let name: string;
  beforeAll(() => {
    built();
    scratch = mkdtempSync(join(tmpdir(), 'signalbox-kept-'));
    chmodSync(scratch, 0o755);
    foreign = join(scratch, 'foreign');
    execFileSync(process.execPath, ['-e', MAKE_FOREIGN, join(dirname(ENTRY), 'main.cjs'), foreign]);
    const env = { ...process.env, XDG_CACHE_HOME: scratch };
    execFileSync(process.execPath, [ENTRY, '--version'], { env });
    name = readdirSync(join(scratch, 'signalbox'))[0] ?? '';
  });
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));
  beforeEach(() => {
    place = new Place();
    chmodSync(place.directory, 0o755);
    mkdirSync(place.path('home'));
    mkdirSync(place.path('home/signalbox'));
  });
  afterEach(() => place.leave());

  const version = (cache = place.path('home')): Promise<string> =>
    place
      .start(process.execPath, [ENTRY, '--version'], { stdin: '', env: { XDG_CACHE_HOME: cache } })
      .ended.then(({ stdout }) => stdout);
  const plant = (owner: number, mode = 0o600, file = place.path(`home/signalbox/${name}`)): void => {
    copyFileSync(foreign, file);
    chownSync(file, owner, owner);
    chmodSync(file, mode);
  };

  it('is run where it is ours: the code of this test would be', async () => {
    plant(0);
    expect(await version()).toBe('FOREIGN');
  });

  it('is not run if another user owns it, may write it, or had it linked there', async () => {
    plant(NOBODY);
    expect(await version()).not.toContain('FOREIGN');
    plant(0, 0o620);
    expect(await version()).not.toContain('FOREIGN');
    rmSync(place.path(`home/signalbox/${name}`));
    plant(0, 0o600, place.path('elsewhere'));
    symlinkSync(place.path('elsewhere'), place.path(`home/signalbox/${name}`));
    expect(await version()).not.toContain('FOREIGN');
  });

  it.each([
    ['may be written by others', () => chmodSync(place.path('home'), 0o777)],
    ['may be written by a group', () => chmodSync(place.path('home'), 0o770)],
    ['belongs to another user', () => chownSync(place.path('home'), NOBODY, NOBODY)],
    ['is reached by a link of another user', () => linkedBy(NOBODY)],
  ])('is not run where a directory on the way %s', async (_, spoil) => {
    plant(0);
    spoil();
    expect(await version()).not.toContain('FOREIGN');
  });

  const linkedBy = (owner: number): void => {
    renameSync(place.path('home'), place.path('real'));
    symlinkSync(place.path('real'), place.path('home'));
    execFileSync('chown', ['-h', String(owner), place.path('home')]);
  };

  it('is run by way of a link of our own', async () => {
    plant(0);
    linkedBy(0);
    expect(await version()).toBe('FOREIGN');
  });

  it('is not written into the home of another user, whose HOME root has kept', async () => {
    rmSync(place.path('home/signalbox'), { recursive: true });
    chownSync(place.path('home'), NOBODY, NOBODY);
    await version();
    expect(readdirSync(place.path('home'))).toEqual([]);
  });

  it('is done without by a user whose cache is root’s, and the command ends as it would', async () => {
    const env = { XDG_CACHE_HOME: place.path('home') };
    const as = ['--reuid', String(NOBODY), '--regid', String(NOBODY), '--clear-groups', process.execPath, ENTRY];
    const { code, stderr } = await place.start('setpriv', [...as, '--version'], { stdin: '', env }).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });

  it('is never that of another user who swaps the directory all the time', async () => {
    const home = place.path('home');
    copyFileSync(join(scratch, 'signalbox', name), join(home, 'signalbox', name));
    chmodSync(join(home, 'signalbox'), 0o700);
    chmodSync(home, 0o777);
    const swap = `
      const { renameSync, mkdirSync, copyFileSync } = require('node:fs');
      process.setgroups([]); process.setgid(${NOBODY}); process.setuid(${NOBODY});
      process.chdir(${JSON.stringify(home)});
      mkdirSync('theirs'); copyFileSync(${JSON.stringify(foreign)}, 'theirs/${name}');
      process.stdout.write('ready');
      const turn = () => {
        for (let i = 0; i < 200; i++) {
          renameSync('signalbox', 'ours'); renameSync('theirs', 'signalbox');
          renameSync('signalbox', 'theirs'); renameSync('ours', 'signalbox');
        }
        setImmediate(turn);
      };
      process.stdin.on('end', () => process.exit()).resume();
      turn();`;
    chmodSync(foreign, 0o644);
    const attacker = spawn(process.execPath, ['-e', swap], { stdio: ['pipe', 'pipe', 'inherit'] });
    try {
      await once(attacker.stdout, 'data');
      for (let round = 0; round < 6; round++) expect(await version()).not.toContain('FOREIGN');
      expect(attacker.exitCode).toBe(null);
    } finally {
      attacker.stdin.end();
      await once(attacker, 'exit');
    }
  });
});
