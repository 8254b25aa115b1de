// What commands keep among the temporary files of the machine is gone when they are, also after `kill -9`.

import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { thisHost } from '../../src/host/index.ts';
import { built, ENTRY, Place, type Started } from '../support/run-processes.ts';

describe.skipIf(thisHost() === undefined)('temporary files after kill -9', () => {
  let place: Place;
  let tmp: string;
  beforeAll(built);
  beforeEach(() => {
    place = new Place();
    tmp = join(place.directory, 'tmp');
    mkdirSync(tmp);
  });
  afterEach(() => place.leave());

  const signalbox = (...args: readonly string[]): Started =>
    place.start(process.execPath, [ENTRY, ...args], { env: { TMPDIR: tmp } });
  const kept = (): string[] => {
    const names = readdirSync(tmp).filter((name) => name.startsWith('signalbox-work-'));
    return names.flatMap((name) => readdirSync(join(tmp, name)));
  };
  const runbook = (run: string): string => {
    const file = join(place.directory, 'book.json');
    writeFileSync(file, JSON.stringify({ name: 'book', phases: [{ name: 'work', run }] }));
    return file;
  };

  it('of a task run are removed by the next one, but not while its command still runs', async () => {
    for (const id of ['a', 'b', 'c']) expect((await signalbox('task', 'publish', id).ended).code).toBe(0);
    const killed = signalbox('task', 'run', 'a', '--', 'sh', '-c', 'echo "pid $$"; exec sleep 1000');
    const child = await killed.pidOf();
    killed.kill('SIGKILL');
    await killed.exited;
    const [directory] = kept();
    const refused = await signalbox('task', 'run', 'a', '--', 'true').ended;
    expect([refused.code, refused.stderr]).toEqual([
      75,
      expect.stringMatching(
        /^signalbox: task\/a: claimed by run:.*; its process is gone; pending again when its lease ends\n {2}to wait for that: --wait 1m\n$/,
      ),
    ]);
    expect((await signalbox('task', 'run', 'b', '--', 'true').ended).code).toBe(0);
    expect(kept()).toEqual([directory]);
    process.kill(child, 'SIGKILL');
    expect((await signalbox('task', 'run', 'c', '--', 'true').ended).code).toBe(0);
    expect(kept()).toEqual([]);
  });

  it('of a pipeline driver are removed by the driver of the next phase', async () => {
    const killed = signalbox('pipeline', 'run', runbook('echo "pid $$"; exec sleep 1000'), '--id', 'one');
    const child = await killed.pidOf('work \\| pid');
    killed.kill('SIGKILL');
    await killed.exited;
    process.kill(child, 'SIGKILL');
    expect(kept()).toHaveLength(1);
    expect((await signalbox('pipeline', 'run', runbook('true'), '--id', 'two').ended).code).toBe(0);
    expect(kept()).toEqual([]);
  });
});
