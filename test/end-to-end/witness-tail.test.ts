// `witness tail` through a server that says that entries were trimmed: a real one forgets them only after a long time.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Scratch, start } from '../support/cli.ts';

const ENTRY = { v: 1, resource: 'lock/main', seq: 7, time: 0, hash: 'f'.repeat(64), commands: [] };
const COMMAND = { actor: 'ann', component: 'lock', command: 'release', outcome: 'released', events: ['lock:released'] };
const SENT = [
  ['open', '5', {}],
  ['resync', '5', { type: 'resync', why: 'some were trimmed' }],
  ['entry', '9:witness/lock/main/000000000007', { ...ENTRY, commands: [COMMAND] }],
] as const;

let scratch: Scratch;
let server: Server;
let url: string;

beforeAll(async () => {
  scratch = new Scratch();
  server = createServer(({ url: path = '' }, response) => {
    if (!path.startsWith('/v1/witness/watch')) {
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ isOn: true }));
      return;
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    for (const [event, id, data] of SENT)
      response.write(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((closed) => server.close(closed));
  scratch.remove();
});

it('prints that on standard error for people, in a line of its own for programs, and goes on with the next entries', async () => {
  const options = { env: { SIGNALBOX_URL: url, SIGNALBOX_SERVER_TOKEN: 'sb_secret' }, cwd: scratch.dir };
  const people = start(['witness', 'tail'], options);
  const programs = start(['witness', 'tail', '--json'], options);
  await Promise.all([people.printed('lock/main'), programs.printed('"seq":7')]);
  for (const { child } of [people, programs]) child.kill('SIGINT');
  const [told, lines] = await Promise.all([people.ended, programs.ended]);
  expect(told.stderr).toContain('trimmed');
  const [resync, entry] = lines.stdout.trim().split('\n');
  expect(JSON.parse(resync ?? '')).toMatchObject({ type: 'resync', why: expect.stringContaining('trimmed') as string });
  expect(JSON.parse(entry ?? '')).toMatchObject({ resource: 'lock/main', seq: 7 });
});
