// Every `curl` of docs/http.md, run in order as one script against one server; and no operation is missing from the page.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { open } from 'signalbox';
import { listen, OPERATIONS } from '../../src/server/index.ts';
import { root } from '../house/sources.ts';
import { startProgram } from '../support/cli.ts';
import { LOCAL, TestServer } from '../support/server.ts';
import { blocksOf } from './blocks.ts';

const page = readFileSync(join(root, 'docs', 'http.md'), 'utf8');
const blocks = blocksOf('docs/http.md', page).filter(({ language }) => language === 'sh');

/** Refusals that the page shows on purpose: by path and code. */
const REFUSED = ['POST /v1/locks/staging/acquire 409', 'POST /v1/pipelines/release-7/resume 403'];

describe('docs/http.md', () => {
  it('has a curl for every operation, and each is answered as it should be', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'signalbox-http-'));
    const box = await open(`file:${join(dir, 'store')}?witness=on`);
    await box.pipelines.start({ name: 'release', phases: [{ name: 'one', run: 'true' }] }, { id: 'release-7' });
    const noted: { operation: string; status: number }[] = [];
    const server = new TestServer(box, { onRequest: (note) => void noted.push(note) });
    const listening = await listen(server.server, { port: 0, host: '127.0.0.1' });
    try {
      const script = ['set -e', ...blocks.map(({ code }) => code)].join('\n');
      const env = { SERVER: listening.url, TOKEN: LOCAL };
      const { code, stderr } = await startProgram('bash', ['-c', script], { env, cwd: dir }).ended;
      expect([code, stderr.replace(/^curl: \(28\).*\n/gm, '')]).toEqual([0, '']);
      expect(OPERATIONS.map(({ id }) => id).filter((id) => !noted.some(({ operation }) => operation === id))).toEqual(
        [],
      );
      const refused = noted
        .filter(({ status }) => status >= 400)
        .map(({ operation, status }) => {
          const one = OPERATIONS.find(({ id }) => id === operation);
          return `${one?.method.toUpperCase()} ${one?.path.replace('{name}', 'staging').replace('{id}', 'release-7')} ${status}`;
        });
      expect(refused).toEqual(REFUSED);
    } finally {
      await listening.close();
      await server.close();
      rmSync(dir, { recursive: true, force: true });
    }
  });
});
