import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { Listening } from './listening.ts';
import { ensureLocalToken } from './local-token.ts';
import { storeUrl } from './location.ts';
import { addressesOf } from './loopback.ts';
import { serverToken } from './server-token.ts';

let dir: string;
let env: Record<string, string>;
let token: string;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'signalbox-token-'));
  env = { XDG_STATE_HOME: dir, HOME: dir };
  token = ensureLocalToken(storeUrl(undefined, env));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** One user listens at 127.0.0.1, port 7300. */
const listeningAs = (...uids: readonly number[]): Listening =>
  new Listening(
    uids.map((uid) => `0: 0100007F:1C84 00000000:0000 0A 00000000:00000000 00:00000000 00000000 ${uid} 0 1`).join('\n'),
    '',
  );
const own = process.geteuid?.() ?? 0;
const other = own + 12_345;
const SERVER = 'http://127.0.0.1:7300';
type Giver = (server: string) => string;

it('the local token goes to a process of this user or of root', () => {
  for (const uid of [own, 0]) {
    const give = serverToken(SERVER, env, () => listeningAs(uid)) as Giver;
    expect(give(SERVER)).toBe(token);
  }
});

it('the local token goes to no other user, not even one that took the place of the server meanwhile', () => {
  let now = listeningAs(own);
  const give = serverToken(SERVER, env, () => now) as Giver;
  expect(give(SERVER)).toBe(token);
  now = listeningAs(other);
  expect(() => give(SERVER)).toThrow(new RegExp(`another user \\(${other}\\) listens at http://127.0.0.1:7300`));
  now = listeningAs(own, other);
  expect(() => give(SERVER)).toThrow(/another user/);
});

it('the local token goes nowhere while nobody listens, or where the system does not tell who does', () => {
  const away = serverToken(SERVER, env, () => listeningAs()) as Giver;
  expect(() => away(SERVER)).toThrow(expect.objectContaining({ code: 'unavailable' }));
  const untold = serverToken(SERVER, env, () => undefined) as Giver;
  expect(() => untold(SERVER)).toThrow(/SIGNALBOX_TOKEN_FILE=/);
  expect(() => serverToken('http://192.0.2.1:7300', env, () => listeningAs(own))).toThrow(/there is no token/);
});

it('a server of this machine that is not there is missed before its token is', () => {
  // Outside of any repository, so that the store, and no token beside it, is in the home.
  vi.spyOn(process, 'cwd').mockReturnValue(dir);
  onTestFinished(() => void vi.restoreAllMocks());
  const bare = { XDG_STATE_HOME: join(dir, 'bare'), HOME: join(dir, 'bare') };
  expect(() => serverToken(SERVER, bare, () => listeningAs())).toThrow(
    expect.objectContaining({ code: 'unavailable', message: expect.stringContaining('cannot be reached') as string }),
  );
  for (const sight of [listeningAs(own), undefined])
    expect(() => serverToken(SERVER, bare, () => sight)).toThrow(/there is no token/);
});

it('a token that is named is sent where its user says', () => {
  const named = { ...env, SIGNALBOX_SERVER_TOKEN: 'sbx_x' };
  expect(serverToken('http://192.0.2.1:7300', named, () => listeningAs(other))).toBe('sbx_x');
});

it('of several servers, the local token goes to those where a process of this user listens, and only there', () => {
  const dead = 'http://127.0.0.1:7301';
  const give = serverToken([dead, SERVER], env, () => listeningAs(own)) as Giver;
  expect(give(SERVER)).toBe(token);
  // Another user may listen there by the time that the request comes.
  expect(() => give(dead)).toThrow(expect.objectContaining({ code: 'unavailable' }));
});

it('localhost is asked at its two addresses, each of which needs a process of this user', () => {
  const servers = addressesOf('http://localhost:7300', env);
  expect(servers).toEqual(['http://127.0.0.1:7300/', 'http://[::1]:7300/']);
  const give = serverToken(servers, env, () => listeningAs(own)) as Giver;
  expect(give(servers[0] as string)).toBe(token);
  for (const free of [servers[1] as string, 'http://localhost:7300']) {
    expect(() => give(free)).toThrow(expect.objectContaining({ code: 'unavailable' }));
  }
  // A certificate shows who answers, and has the name in it.
  expect(addressesOf('https://localhost:7300', env)).toEqual(['https://localhost:7300']);
  expect((serverToken('https://localhost:7300', env, () => listeningAs(own)) as Giver)('https://localhost:7300')).toBe(
    token,
  );
});
