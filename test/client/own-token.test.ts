// Where the client gets its token from if its program names none: Node finds it, a browser says what to do.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { connect as connectInBrowser } from '../../src/client/index.ts';
import { connect, Failure } from '../../src/client/node.ts';
import { ensureLocalToken } from '../../src/runtime/location/local-token.ts';
import { storeUrl } from '../../src/runtime/location/location.ts';
import { listen, type Listening } from '../../src/server/index.ts';
import { TestServer } from '../support/server.ts';

let dir: string;
let server: TestServer;
let listening: Listening;
let local: string;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'signalbox-own-token-'));
  local = ensureLocalToken(storeUrl(undefined, { XDG_STATE_HOME: dir, HOME: dir }, dir));
  server = await TestServer.on('memory:', { localToken: local });
  listening = await listen(server.server, { port: 0, host: '127.0.0.1' });
});
afterAll(async () => {
  await listening.close();
  await server.close();
  rmSync(dir, { recursive: true, force: true });
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

/** Another place than that of the repository, whose store has a token of its own. */
function elsewhere(more: Readonly<Record<string, string>> = {}): void {
  vi.spyOn(process, 'cwd').mockReturnValue(dir);
  const given = { XDG_STATE_HOME: dir, HOME: dir, SIGNALBOX_SERVER_TOKEN: '', SIGNALBOX_TOKEN_FILE: '', ...more };
  for (const [name, value] of Object.entries(given)) vi.stubEnv(name, value);
}

describe('in Node, a program that names no token', () => {
  it('gets it from SIGNALBOX_SERVER_TOKEN', async () => {
    elsewhere({ SIGNALBOX_SERVER_TOKEN: await server.token('viewer') });
    await using box = connect(listening.url);
    expect(await box.token()).toMatchObject({ name: 'a viewer', role: 'viewer' });
  });

  it('gets it from the file of SIGNALBOX_TOKEN_FILE', async () => {
    const file = join(dir, 'token');
    writeFileSync(file, `${await server.token('worker')}\n`);
    elsewhere({ SIGNALBOX_TOKEN_FILE: file });
    await using box = connect(listening.url);
    expect(await box.token()).toMatchObject({ name: 'a worker', role: 'worker' });
  });

  it('reads that file again when its token was replaced, and sends the request once more', async () => {
    const file = join(dir, 'rotated');
    const [first, second] = [await server.token('worker'), await server.token('viewer')];
    const revoked = async (secret: string): Promise<void> => {
      await server.box.tokens.revoke((await server.get('/v1/token', { token: secret })).body.id);
      await expect.poll(async () => (await server.get('/v1/token', { token: secret })).status).toBe(401);
    };
    writeFileSync(file, first);
    elsewhere({ SIGNALBOX_TOKEN_FILE: file });
    await using box = connect(listening.url);
    expect((await box.token()).role).toBe('worker');
    writeFileSync(file, second);
    // Until its token is refused, it has no reason to read.
    expect((await box.token()).role).toBe('worker');
    await revoked(first);
    expect((await box.token()).role).toBe('viewer');
    await revoked(second);
    await expect(box.token()).rejects.toMatchObject({ code: 'forbidden' });
  });

  it.runIf(process.platform === 'linux')('gets the local one for a server on loopback', async () => {
    elsewhere();
    await using box = connect(listening.url);
    expect(await box.token()).toMatchObject({ name: 'local', role: 'administrator' });
    await using both = connect([listening.url, 'http://127.0.0.1:1']);
    expect(await both.token()).toMatchObject({ name: 'local' });
  });

  it.runIf(process.platform === 'linux')('sends the local one to no port where nobody listens', async () => {
    elsewhere();
    const { port } = new URL(listening.url);
    const sent: string[] = [];
    const asking = (async (url: string, init: RequestInit) => {
      sent.push(new URL(url).host);
      return fetch(url, init);
    }) as typeof fetch;
    await using several = connect(['http://127.0.0.1:1', listening.url], { fetch: asking });
    expect(await several.token()).toMatchObject({ name: 'local' });
    await using byName = connect(`http://localhost:${port}`, { fetch: asking });
    expect(await byName.token()).toMatchObject({ name: 'local' });
    expect(sent).toEqual([`127.0.0.1:${port}`, `127.0.0.1:${port}`]);
  });

  it('asks its own server although the token is not for the place of another one', async () => {
    const token = (server: string): string => {
      if (server === listening.url) return local;
      throw new Failure('forbidden', 'another user listens there');
    };
    await using box = connect(['http://127.0.0.1:1', listening.url], { token });
    expect(await box.token()).toMatchObject({ name: 'local' });
    await expect(connect('http://127.0.0.1:1', { token }).token()).rejects.toThrow(/another user listens there/);
  });

  it('is told how to name one for a server on another machine, which the local one is not sent to', async () => {
    elsewhere();
    for (const url of ['http://192.0.2.1:7300', [listening.url, 'http://192.0.2.1:7300']]) {
      const asked = connect(url).token();
      await expect(asked).rejects.toThrow(/there is no token for http:\/\/192.0.2.1:7300\n  set SIGNALBOX_TOKEN_FILE/);
      await expect(asked).rejects.toBeInstanceOf(Failure);
    }
  });

  it('names one all the same if it likes', async () => {
    elsewhere({ SIGNALBOX_SERVER_TOKEN: 'sbx_wrong' });
    await using box = connect(listening.url, { token: local });
    expect(await box.token()).toMatchObject({ name: 'local' });
  });
});

it('in a browser, a page that names no token is told where it comes from', () => {
  expect(() => connectInBrowser(listening.url)).toThrow(
    /token is missing.*link.*#token=.*signalbox token local.*signalbox token create/,
  );
});
