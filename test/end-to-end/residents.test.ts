// Most commands of the tests share a process (test/support/residents.ts). That is right only if nobody can tell by the answers.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inResident, Scratch, signalbox } from '../support/cli.ts';
import { isForResident, killIdle } from '../support/residents.ts';

describe('a command that shares its process with those before it', () => {
  let scratch: Scratch;
  beforeAll(async () => {
    scratch = new Scratch();
    await scratch.run('lock', 'acquire', 'main', '--holder', 'agent:7', '--ttl', '1h');
  });
  afterAll(() => scratch.remove());

  it.each([
    [['lock', 'list']],
    [['lock', 'show', 'nobody-uses-it']],
    [['lock', 'aquire', 'main']],
    [['lock', 'release', 'main', '--holder', 'agent:8', '--token', '1']],
    [['pipeline', 'validate', 'not-there.yaml']],
    [['task', 'show', 'not-there', '--json']],
    [['--version']],
    [['help', 'sem']],
  ])('answers as one with a process of its own: %s', async (args) => {
    const options = { env: { SIGNALBOX_URL: scratch.store }, cwd: scratch.dir };
    expect(await inResident(args, options)).toEqual(await signalbox(args, options));
  });

  it('sees nothing of the environment and the directory of those', async () => {
    const env = { SIGNALBOX_URL: scratch.store };
    const named = ['lock', 'acquire', 'other'];
    const before = { ...env, SIGNALBOX_HOLDER: 'agent:9' };
    expect(await inResident(named, { env: before, cwd: scratch.dir })).toMatchObject({ code: 0 });
    expect(await inResident(named, { env, cwd: scratch.dir })).toMatchObject({ code: 64, stdout: '' });
    expect(await inResident(['import', '.'], { env, cwd: '/' })).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('locks.json') as unknown,
    });
  });

  it('is run by another process if that one was ended in the meantime', async () => {
    const options = { env: { SIGNALBOX_URL: scratch.store }, cwd: scratch.dir };
    const before = await inResident(['--version'], options);
    killIdle();
    expect(await inResident(['--version'], options)).toEqual(before);
  });

  it('is none that starts others, serves or is told something on its input', () => {
    expect(isForResident(['run', '--lock', 'main', 'true'])).toBe(false);
    expect(isForResident(['lock', 'list', '--', 'x'])).toBe(false);
    expect(isForResident(['serve'])).toBe(false);
    expect(isForResident(['pipeline', 'run', 'release.yaml'])).toBe(false);
    expect(isForResident(['who'], { NODE_EXTRA_CA_CERTS: 'file' })).toBe(false);
    expect(isForResident(['who'])).toBe(true);
  });
});
