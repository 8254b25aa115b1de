// A store that is shared with a group on purpose: its members meet in it, and nobody else gets in.

import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  type Stats,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Failure, storeUrl } from 'signalbox';
import { openEmbedded, storeFile } from 'signalbox/store';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { access } from '../../src/cli/doctor/file-checks.ts';
import type { Ended } from '../support/cli.ts';
import { errorOf } from '../support/outcome.ts';
import { ANNA, BERT, NOBODY, signalboxAs, TEAM, type User, whyNoOthers } from '../support/users.ts';

const why = whyNoOthers();
let top: string;
let directory: string;

beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), 'signalbox-shared-'));
  chmodSync(top, 0o755);
  directory = join(top, 'store');
});

afterEach(() => {
  rmSync(top, { recursive: true });
});

function modeOf(...path: readonly string[]): string {
  return (lstatSync(join(directory, ...path)).mode & 0o7777).toString(8).padStart(4, '0');
}

async function opened(share?: 'group' | 'none'): Promise<void> {
  await (await openEmbedded(directory, { share })).close();
}

describe('share=group', () => {
  it('opens a store to its group, and it stays open until its owner says share=none', async () => {
    await opened();
    expect([modeOf(), modeOf('store.db')]).toEqual(['0700', '0600']);
    await opened('group');
    expect([modeOf(), modeOf('store.db')]).toEqual(['2770', '0660']);
    await opened();
    expect([modeOf(), modeOf('store.db')]).toEqual(['2770', '0660']);
    await opened('none');
    expect([modeOf(), modeOf('store.db')]).toEqual(['0700', '0600']);
  });

  it('is known to those who read the store, who then believe less of it', async () => {
    for (const share of ['none', 'group'] as const) {
      const store = await openEmbedded(directory, { share });
      expect(store.isOfSeveralUsers).toBe(share === 'group');
      await store.close();
    }
  });

  it('is not what a directory means that only happens to be open to its group', async () => {
    mkdirSync(directory);
    chmodSync(directory, 0o2770);
    await opened();
    expect([modeOf(), modeOf('store.db')]).toEqual(['0700', '0600']);
  });

  it('does not open a directory to its group that has other files in it', async () => {
    mkdirSync(directory);
    writeFileSync(join(directory, 'diary.txt'), '');
    const error = await errorOf(opened('group'));
    expect(Failure.is(error, 'forbidden')).toBe(true);
    expect((error as Failure).message).toMatch(/other files in it \(diary.txt\).*store\/signalbox\?share=group/);
  });

  it('is what the doctor tells, and how to change it', async () => {
    const told = (): string => {
      const { verdict, message, advice } = access(directory) ?? {};
      return [verdict, message, advice].join(' ');
    };
    await opened();
    expect(told()).toMatch(/^ok only .* \(uid \d+\); to share it .*store\?share=group/);
    await opened('group');
    expect(told()).toMatch(/^ok .* and all members of the group .*; to end that: .*store\?share=none/);
    chmodSync(directory, 0o755);
    chmodSync(storeFile(directory), 0o644);
    expect(told()).toMatch(/^warn every user can open the files of .*0755.* chmod -R go= /);
    await opened();
    chmodSync(top, 0o777);
    expect(told()).toMatch(/^warn only .* but .* can be written by everybody/);
  });

  it('is kept in the URL that children get', () => {
    const { dir, url } = { dir: top, url: `file:${top}` };
    expect(storeUrl(`${url}?share=group`)).toBe(`${url}?share=group`);
    expect(storeUrl('file:.?share=group&durability=full', {}, dir)).toBe(`${url}?durability=full&share=group`);
    expect(storeUrl(undefined, { SIGNALBOX_URL: 'file:.?share=none' }, dir)).toBe(`${url}?share=none`);
    expect(() => storeUrl(`${url}?share=everybody`)).toThrow('share is "everybody"; expected group or none');
    expect(() => storeUrl(`${url}?shared=group`)).toThrow(
      '"shared" is no setting; expected durability, share and witness',
    );
  });
});

describe.skipIf(why !== undefined)(`between users${why === undefined ? '' : ` (skipped: ${why})`}`, () => {
  beforeEach(() => {
    mkdirSync(directory);
    chownSync(directory, ANNA.uid, TEAM);
  });

  function ended(user: User, ...args: readonly string[]): Promise<Ended> {
    return signalboxAs(user, args, { cwd: top, env: { HOME: top } }).ended;
  }

  const shared = (): string[] => ['--store', `file:${directory}?share=group`];
  const plain = (): string[] => ['--store', `file:${directory}`];

  async function annaShares(): Promise<void> {
    expect(await ended(ANNA, 'who', ...shared())).toMatchObject({ code: 0 });
    expect(await ended(ANNA, 'run', '--lock', 'first', ...shared(), '--', 'true')).toMatchObject({
      code: 0,
      stderr: '',
    });
  }

  it('members hand a lock on to each other', async () => {
    await annaShares();
    const untilToldToGo = 'echo "$SIGNALBOX_URL"; until [ -e go ]; do sleep 0.05; done';
    const args = ['run', '--lock', 'x', ...shared(), '--', 'sh', '-c', untilToldToGo];
    const held = signalboxAs(ANNA, args, { cwd: top, env: { HOME: top } });
    await held.printed(`file:${directory}?share=group`);
    const bert = ended(BERT, 'run', '--lock', 'x', ...shared(), '--', 'echo', 'mine');
    const bells = (): Stats[] => {
      const names = readdirSync(join(directory, 'bells'));
      return names.flatMap((name) => lstatSync(join(directory, 'bells', name), { throwIfNoEntry: false }) ?? []);
    };
    const owners = (): Set<number> => new Set(bells().map(({ uid }) => uid));
    await expect.poll(owners).toEqual(new Set([ANNA.uid, BERT.uid]));
    // A bell that is being made may not have its mode yet.
    const modes = (): Set<string> => new Set(bells().map(({ gid, mode }) => `${gid} ${(mode & 0o777).toString(8)}`));
    await expect.poll(modes).toEqual(new Set([`${TEAM} 660`]));
    writeFileSync(join(top, 'go'), '');
    expect(await bert).toMatchObject({ code: 0, stdout: 'mine\n', stderr: '' });
    expect((await held.ended).code).toBe(0);
  });

  it('a member has to say share=group, and learns that; a user outside the group is refused either way', async () => {
    await annaShares();
    const unsaid = await ended(BERT, 'who', ...plain());
    expect(unsaid.code).not.toBe(0);
    expect(unsaid.stderr).toMatch(
      /belongs to uid 54001, who shares it with the group gid 54321\. You .* are in that group: .* name it as .*\?share=group/,
    );
    const stranger = await ended(NOBODY, 'who', ...shared());
    expect(stranger.code).not.toBe(0);
    expect(stranger.stderr).toMatch(/shares it with the group gid 54321\. You \(.*\) are not in that group/);
  });

  it('a member cannot share what its owner has not shared', async () => {
    expect((await ended(ANNA, 'run', '--lock', 'first', ...plain(), '--', 'true')).code).toBe(0);
    const { code, stderr } = await ended(BERT, 'who', ...shared());
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/belongs to uid 54001, and you are uid 54002, so you cannot use it/);
    expect(modeOf()).toBe('0700');
  });

  it('a link that a member plants is refused by the others, and its target keeps its mode', async () => {
    await annaShares();
    const secret = join(top, 'secret');
    writeFileSync(secret, 'data', { mode: 0o600 });
    chownSync(secret, ANNA.uid, ANNA.gid);
    rmSync(storeFile(directory));
    symlinkSync('../secret', storeFile(directory));
    const { code, stderr } = await ended(ANNA, 'who', ...shared());
    expect(code).not.toBe(0);
    expect(stderr).toContain('store.db is a symbolic link');
    expect(lstatSync(secret).mode & 0o777).toBe(0o600);
  });
});
