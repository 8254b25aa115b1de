// Whatever somebody wrote into a store, it is only ever text to those who look: no terminal obeys it.

import { open, type Signalbox } from 'signalbox';
import { openEmbedded, type ReadResult, type Store, Value } from 'signalbox/store';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { built } from '../support/run-processes.ts';
import { Scratch } from '../support/cli.ts';

const HOSTILE = 'x\u001b]0;owned\u0007\u009b2J\u202egnp.exe\u2066';

describe('a hostile text in a store', () => {
  let scratch: Scratch;
  let box: Signalbox;
  let store: Store;

  /** As one would who writes the file without signalbox, which refuses such a name. */
  async function spoil(key: string): Promise<void> {
    const { results } = await store.transaction({ compare: [], success: [{ do: 'read', key }], failure: [] });
    const text = JSON.stringify((results[0] as ReadResult).pairs[0]?.value.json);
    const spoilt = JSON.parse(text.replaceAll('PLACE', JSON.stringify(HOSTILE).slice(1, -1))) as unknown;
    await store.transaction({ compare: [], success: [{ do: 'put', key, value: Value.json(spoilt) }], failure: [] });
  }

  beforeAll(async () => {
    built();
    scratch = new Scratch();
    box = await open(scratch.store);
    store = await openEmbedded(scratch.store.slice('file:'.length));
    await box.lock('a').acquire({ holder: 'PLACE', reason: 'PLACE', metadata: { command: 'PLACE' } });
    await box.semaphore('s', { capacity: 1 }).acquire({ holder: 'PLACE', metadata: { command: 'PLACE' } });
    await spoil('r/lock/a');
    await spoil('r/semaphore/s');
    await box.tasks.publish('t', { data: { text: HOSTILE } });
  });
  afterAll(async () => {
    await store.close();
    await box.close();
    scratch.remove();
  });

  it.each([
    ['who'],
    ['lock', 'list'],
    ['lock', 'show', 'a'],
    ['sem', 'list'],
    ['sem', 'show', 's'],
    ['lock', 'acquire', 'a', '--holder', 'b', '--no-wait'],
    ['run', '--lock', 'a', '--no-wait', '--', 'true'],
    ['run', '--lock', 'a', '--wait', '400ms', '--verbose', '--', 'true'],
    ['run', '--sem', 's', '--wait', '1ms', '--', 'true'],
    ['task', 'show', 't'],
    ['guard', 'check', '-e', '{"lockFree":"a"}'],
    ['doctor'],
  ])('does nothing to the terminal of a reader: %s %s %s', async (...args) => {
    const [told, json] = await Promise.all([
      scratch.run(...args),
      args[0] === 'run' ? undefined : scratch.run(...args, '--json'),
    ]);
    for (const { stdout, stderr } of [told, ...(json === undefined ? [] : [json])]) {
      expect(stdout + stderr).not.toBe('');
      expect((stdout + stderr).replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    }
  });
});
