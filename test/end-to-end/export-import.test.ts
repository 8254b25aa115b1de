// The state of one store into another, by files.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Scratch } from '../support/cli.ts';
import { newStoreOf, stores } from '../support/stores.ts';

describe.each(stores)('on $on', ({ kind }) => {
  const newStore = newStoreOf(kind);
  let scratch: Scratch;
  beforeEach(() => void (scratch = new Scratch(newStore)));
  afterEach(() => scratch.remove());

  describe('export and import', () => {
    it('bring holds with their tokens into another store, and a round trip changes nothing', async () => {
      const held = await scratch.json<{ token: number }>(
        'lock',
        'acquire',
        'main',
        '--holder',
        'agent:7',
        '--ttl',
        '5m',
      );
      await scratch.run('sem', 'acquire', 'api', '--capacity', '4', '--weight', '2', '--holder', 'agent:7');
      await scratch.run('task', 'publish', 'build', '--data', '{"x":1}');
      await scratch.run('bus', 'put', 'config/colour', 'red');
      await scratch.run('task', 'configure', '--keep', '3d', '--keep-most', '70');
      const [one, two] = [scratch.path('one'), scratch.path('two')];
      const other = ['--store', `file:${scratch.path('other')}`];
      expect(await scratch.run('export', one)).toMatchObject({ code: 0, stdout: expect.stringContaining('2 holds') });
      expect(await scratch.json('import', one, ...other)).toEqual({
        ...{ locks: 1, semaphores: 1, holds: 2 },
        ...{ tasks: 1, pipelines: 0, keys: kind === 'etcd' ? 0 : 1 },
      });
      await scratch.run('export', two, ...other);
      for (const file of ['/locks.json', '/semaphores.json', '/tasks.json', '/keys.json']) {
        expect(readFileSync(two + file, 'utf8')).toBe(readFileSync(one + file, 'utf8'));
      }
      const kept = { keepMs: 3 * 86_400_000, keepMost: 70 };
      expect(await scratch.json('task', 'configure', ...other)).toEqual(kept);
      // What was set here is not changed by an import.
      await scratch.run('task', 'configure', '--keep-most', '7', ...other);
      await scratch.json('import', one, ...other);
      expect(await scratch.json('task', 'configure', ...other)).toEqual({ ...kept, keepMost: 7 });
      const claim = ['--holder', 'agent:7', '--token', String(held.token)];
      expect(await scratch.run('lock', 'renew', 'main', ...claim, ...other)).toMatchObject({ code: 0 });
      expect(await scratch.run('lock', 'release', 'main', ...claim, ...other)).toMatchObject({ code: 0 });
      // In an etcd, tasks are there for all stores.
      expect(await scratch.run('task', 'forget', 'build')).toMatchObject({ code: 0 });
    });

    it('overwrite nothing that is held: told with what is in the way, and 1', async () => {
      await scratch.run('lock', 'acquire', 'main', '--holder', 'agent:7');
      await scratch.run('export', scratch.path('one'));
      // What is there already, as it was exported, is in nobody's way: an import that was cut off can be repeated.
      expect(await scratch.run('import', scratch.path('one'))).toMatchObject({ code: 0 });
      await scratch.run('lock', 'release', 'main', '--holder', 'agent:7');
      await scratch.run('lock', 'acquire', 'main', '--holder', 'agent:8');
      const plain = await scratch.run('import', scratch.path('one'));
      expect(plain).toMatchObject({ code: 1, stdout: '' });
      expect(plain.stderr).toBe('signalbox: nothing was imported:\n  lock/main: it is held, by agent:8\n');
      const { stderr } = await scratch.run('import', scratch.path('one'), '--json');
      expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'negative', conflicts: [{ resource: 'lock/main' }] } });
    });

    it('refuse a file that is not as it should be with 65, naming file and place', async () => {
      mkdirSync(scratch.path('bad'));
      writeFileSync(scratch.path('bad', 'locks.json'), '{"version":1,"locks":[{"name":"x"}]}');
      writeFileSync(scratch.path('bad', 'semaphores.json'), '{"version":1,"semaphores":[]}');
      const { code, stderr } = await scratch.run('import', scratch.path('bad'));
      expect(code).toBe(65);
      expect(stderr).toContain('locks.json: locks[0]: token is missing');
      expect(await scratch.run('import', scratch.path('nowhere'))).toMatchObject({ code: 64 });
    });
  });
});
