// A port of loopback on which another user listens, in place of the server.

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { serverToken } from '../../src/runtime/location/server-token.ts';
import { ensureLocalToken } from '../../src/runtime/location/local-token.ts';
import { storeUrl } from '../../src/runtime/location/location.ts';
import { NOBODY, startAs, whyNoOthers } from '../support/users.ts';

const LISTENS = `require('node:http').createServer().listen(0, '127.0.0.1', function () { console.log(this.address().port + ';') })`;

it.skipIf(whyNoOthers() !== undefined)('the local token goes to a server of this user, and to no other', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'signalbox-listener-'));
  const other = startAs(NOBODY, process.execPath, ['-e', LISTENS]);
  const own = createServer().listen(0, '127.0.0.1');
  try {
    const env = { XDG_STATE_HOME: dir, HOME: dir };
    const token = ensureLocalToken(storeUrl(undefined, env));
    let text = '';
    other.child.stdout?.on('data', (data: string) => (text += data));
    await Promise.all([other.printed(';'), once(own, 'listening')]);
    const give = (port: string | number): string => {
      const server = `http://127.0.0.1:${port}`;
      return (serverToken(server, env) as (server: string) => string)(server);
    };
    expect(give((own.address() as AddressInfo).port)).toBe(token);
    expect(() => give(text.split(';')[0] as string)).toThrow(`another user (${NOBODY.uid}) listens`);
  } finally {
    other.child.kill('SIGKILL');
    own.close();
    await other.ended;
    rmSync(dir, { recursive: true, force: true });
  }
});
