// A script sees nothing of a run but its exit code.

import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { built, exitCodeFor, Place } from '../support/run-processes.ts';
import { newStoreOf, stores } from '../support/stores.ts';

describe.each(stores)('run ends as its command ended, on $on', ({ kind }) => {
  const newStore = newStoreOf(kind);
  let place: Place;
  beforeAll(built);
  beforeAll(() => {
    place = new Place(newStore);
  });
  afterAll(() => place.leave());

  const codeOf = async (...args: string[]): Promise<number | null> => (await place.run(args, { stdin: '' }).ended).code;

  it.each([0, 1, 2, 3, 42, 64, 69, 75, 76, 125, 126, 127, 128, 130, 200, 255])(
    'with its exit code, whichever it is: %i',
    async (code) => {
      expect(await codeOf('--lock', 'a', '--', 'sh', '-c', `exit ${code}`)).toBe(code);
    },
  );

  it.each(['SIGTERM', 'SIGKILL', 'SIGINT', 'SIGHUP', 'SIGUSR1', 'SIGPIPE', 'SIGSEGV'] as const)(
    'with 128 and the number of the signal that ended it: %s',
    async (signal) => {
      const ended = await place.run(['--lock', 'a', '--', 'sh', '-c', `kill -${signal.slice(3)} $$`]).ended;
      expect(ended).toMatchObject({ code: exitCodeFor(signal), signal: null });
    },
  );

  it('passes arguments on as they are, also those that look like options of its own', async () => {
    const { stdout } = await place.run(['--lock', 'a', '--', 'printf', '%s|', '--lock', '', 'a b', "'", '--', '$HOME'])
      .ended;
    expect(stdout).toBe("--lock||a b|'|--|$HOME|");
  });

  it('runs a command without a -- before it, as long as its own options come first', async () => {
    const { code, stdout } = await place.run(['--lock', 'a', 'printf', '%s|', '-x', '--lock']).ended;
    expect({ code, stdout }).toEqual({ code: 0, stdout: '-x|--lock|' });
  });

  describe('before anything is acquired', () => {
    beforeAll(async () => {
      writeFileSync(place.path('not-executable'), 'echo no\n');
      mkdirSync(place.path('a-directory'));
      writeFileSync(place.path('script'), 'echo I am a script without a first line\n');
      chmodSync(place.path('script'), 0o755);
      const box = await place.open();
      await box.lock('taken').acquire({ holder: 'somebody' });
    });

    it('says 127 for a command that is not there', async () => {
      const { code, stderr } = await place.run(['--lock', 'taken', '--', 'no-such-command']).ended;
      expect({ code, stderr }).toEqual({ code: 127, stderr: 'signalbox: no-such-command: command not found\n' });
      expect(await codeOf('--lock', 'taken', '--', './no-such-file')).toBe(127);
    });

    it('says 126 for one that is no program', async () => {
      expect(await codeOf('--lock', 'taken', '--', './not-executable')).toBe(126);
      expect(await codeOf('--lock', 'taken', '--', './a-directory')).toBe(126);
    });

    it('says 64 for a call that makes no sense', async () => {
      expect(await codeOf('--', 'true')).toBe(64);
      expect(await codeOf('--lock', 'a', '--wait', 'soon', '--', 'true')).toBe(64);
      expect(await codeOf('--lock', 'a', '--no-such-option', '--', 'true')).toBe(64);
      expect(await codeOf('--lock', 'a')).toBe(64);
    });

    it('says 75 if it cannot be had at once, and who has it', async () => {
      const { code, stderr, stdout } = await place.run(['--lock', 'taken', '--no-wait', '--', 'echo', 'ran']).ended;
      expect({ code, stdout }).toEqual({ code: 75, stdout: '' });
      expect(stderr).toMatch(/^signalbox: lock\/taken: held by somebody for \d+(?:\.\d+)? m?s\n$/);
    });

    it('says 75 if it cannot be had in time, and who has it, and leaves no trace in the queue', async () => {
      // Long enough for a busy machine to have found out which of the two is taken.
      const wants = ['--lock', 'free', '--lock', 'taken', '--wait', '1s'];
      const { code, stderr } = await place.run([...wants, '--', 'true']).ended;
      expect(code).toBe(75);
      expect(stderr).toMatch(
        /^signalbox: lock\/taken: not granted within 1 s; held by somebody for \d+(?:\.\d+)? m?s\n$/,
      );
      const box = await place.open();
      expect((await box.lock('taken').inspect()).waiting).toEqual([]);
    });

    it('takes nothing if one of several cannot be had', async () => {
      expect(await codeOf('--lock', 'free', '--lock', 'taken', '--no-wait', '--', 'true')).toBe(75);
      const box = await place.open();
      expect(await box.lock('free').isFree()).toBe(true);
    });

    it('says 69 if the store cannot be reached', async () => {
      // Port 1 is for a service that nobody has.
      const url = kind === 'file' ? `file:${place.path('not-executable')}/store` : 'etcd://127.0.0.1:1';
      const { code, stderr } = await place.run(['--store', url, '--lock', 'a', '--', 'true']).ended;
      expect({ code, stderr: stderr !== '' }).toEqual({ code: 69, stderr: true });
    });
  });

  it('runs what a shell would run, also a script without a first line', async () => {
    const { code, stdout } = await place.run(['--lock', 'a', '--', './script']).ended;
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'I am a script without a first line\n' });
  });

  it('runs in a directory that has been deleted', async () => {
    const script = 'mkdir gone && cd gone && rmdir ../gone && exec "$NODE" "$ENTRY" run --lock a -- echo ran';
    const { code, stdout } = await place.start('sh', ['-c', script]).ended;
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'ran\n' });
  });

  it('says 64 for slots that can never be had', async () => {
    expect(await codeOf('--sem', 'small/2', '--', 'true')).toBe(0);
    expect(await codeOf('--sem', 'small=3', '--', 'true')).toBe(64);
    expect(await codeOf('--sem', 'small/5', '--', 'true')).toBe(64);
    expect(await codeOf('--sem', 'nobody-said-how-many', '--', 'true')).toBe(64);
  });
});
