// A process that may read the files of a store can keep everybody from writing it. It is named to those who wait in vain.

import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openEmbedded, type Store, storeFile, Value } from 'signalbox/store';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { blockersOf } from '../../src/store/embedded/blockers.ts';
import { type Started, startProgram } from '../support/cli.ts';
import { errorOf } from '../support/outcome.ts';
import { NOBODY, startAs, whyNoOthers } from '../support/users.ts';

const why = whyNoOthers();
let directory: string;
let store: Store;
let reader: Started | undefined;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'signalbox-lock-out-'));
  store = await openEmbedded(directory, { busyMs: 300 });
});

afterEach(async () => {
  reader?.child.kill('SIGKILL');
  await reader?.ended;
  reader = undefined;
  await store.close();
  rmSync(directory, { recursive: true });
});

/** Perl is on every Debian, and Node cannot lock files. 37: a lock of the open file, which names no process. */
const LOCKS = (command: string): string =>
  `open(F, "<", $ARGV[0]) or die; fcntl(F, ${command}, pack("ssx4qqix4", 0, 0, $ARGV[1], 1, 0)) or die;` +
  '$| = 1; print "locked\n"; sleep 600;';

function put(): Promise<unknown> {
  const success = [{ do: 'put', key: 'a', value: Value.text('x') }] as const;
  return store.transaction({ compare: [], success, failure: [] });
}

async function refusal(): Promise<string> {
  const error = await errorOf(put());
  expect(error).toMatchObject({ code: 'unavailable' });
  return (error as Error).message;
}

describe.skipIf(process.platform !== 'linux')('a write that a reader keeps waiting (Linux only)', () => {
  it.each([
    ['of a process', '6'],
    ['of an open file', '37'],
  ])('names that reader: a lock %s', async (_, command) => {
    reader = startProgram('/usr/bin/perl', ['-e', LOCKS(command), `${storeFile(directory)}-shm`, '120']);
    await reader.printed('locked');
    const pid = reader.child.pid as number;
    expect(await refusal()).toMatch(
      new RegExp(
        `process ${pid} \\(perl, user .*\\) has kept the store busy for \\d+ m?s with a read lock; nothing was changed; .*kill ${pid}\\)`,
      ),
    );
    reader.child.kill('SIGKILL');
    await reader.ended;
    await put();
  });

  it.skipIf(why !== undefined)('of another user is not possible: the files are closed to it', async () => {
    reader = startAs(NOBODY, '/usr/bin/perl', ['-e', LOCKS('6'), `${storeFile(directory)}-shm`, '120']);
    expect((await reader.ended).code).not.toBe(0);
    await put();
  });
});

describe('the processes that keep a file busy', () => {
  /** `MEMORY` and `MAIN` stand for the files. */
  function found(...lines: readonly string[]): (number | undefined)[] {
    writeFileSync(join(directory, 'other'), '');
    const place = (path: string): string => `00:00:${statSync(path).ino}`;
    const text = lines
      .map((line, i) => `${i + 1}: POSIX  ADVISORY  ${line}`)
      .join('\n')
      .replaceAll('MEMORY', place(`${storeFile(directory)}-shm`))
      .replaceAll('MAIN', place(storeFile(directory)))
      .replaceAll('OTHER', place(join(directory, 'other')));
    return blockersOf(storeFile(directory), () => text).map(({ pid }) => pid);
  }

  it('are those whose locks cover the place for writing, whatever else they cover', () => {
    expect(found('READ 91 MEMORY 120 120', 'READ 92 MEMORY 0 EOF', 'WRITE 93 MEMORY 100 119')).toEqual([91, 92]);
    expect(found('WRITE 94 MEMORY 120 120', 'READ 95 MEMORY 124 124', 'READ 96 OTHER 120 120')).toEqual([94]);
  });

  it('are otherwise those who recover, carry over, or have the file to themselves', () => {
    expect(found('WRITE 91 MEMORY 122 122', 'READ 92 MEMORY 128 128')).toEqual([91]);
    expect(found('WRITE 91 MAIN 1073741824 1073742335', 'READ 92 MEMORY 123 123')).toEqual([91]);
    expect(found('READ 91 MEMORY 122 122', 'READ 92 MEMORY 123 123')).toEqual([91]);
  });

  it('are none of those who only read, nor of those who only wait', () => {
    const usual = ['READ 91 MEMORY 128 128', 'READ 91 MAIN 1073741826 1073742335', 'READ 92 MEMORY 124 124'];
    expect(found(...usual)).toEqual([]);
    expect(blockersOf(storeFile(directory), () => `1: -> POSIX  ADVISORY  WRITE 91 00:00:1 120 120`)).toEqual([]);
  });
});
