// Every `curl` of docs/http.md, run in order as one script against one server; and no operation is missing from the page.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { open } from 'signalbox';
import { listen, OPERATIONS, type Server } from '../../src/server/index.ts';
import { RouteTable } from '../../src/server/route-table.ts';
import { root } from '../house/sources.ts';
import { startProgram } from '../support/cli.ts';
import { codesOf, type Described, misfit } from '../support/described.ts';
import { LOCAL, TestServer } from '../support/server.ts';
import { blocksOf } from './blocks.ts';

const page = readFileSync(join(root, 'docs', 'http.md'), 'utf8');
const blocks = blocksOf('docs/http.md', page).filter(({ language }) => language === 'sh');

interface Answered {
  readonly operation: string;
  readonly status: number;
  readonly body: unknown;
}

/** The same server, which also tells what each operation answered. */
function overheard(server: Server, told: (answered: Answered) => void): Server {
  const table = new RouteTable(OPERATIONS);
  return {
    get readers() {
      return server.readers;
    },
    fetch: (request) => server.fetch(request),
    stop: () => server.stop(),
    answer: (asked) => {
      const operation = table.find(asked.method, asked.path)?.operation.id ?? '';
      const answering = server.answer(asked);
      void answering?.then(({ status, body }) => told({ operation, status, body }));
      return answering;
    },
  };
}

/** Refusals that the page shows on purpose: by path and code. */
const REFUSED = ['POST /v1/locks/staging/acquire 409', 'POST /v1/pipelines/release-7/resume 403'];

describe('docs/http.md', () => {
  it('has a curl for every operation, and each is answered as it should be', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'signalbox-http-'));
    const box = await open(`file:${join(dir, 'store')}?witness=on`);
    await box.pipelines.start({ name: 'release', phases: [{ name: 'one', run: 'true' }] }, { id: 'release-7' });
    const noted: { operation: string; status: number }[] = [];
    const server = new TestServer(box, { onRequest: (note) => void noted.push(note) });
    const answered: Answered[] = [];
    const all = overheard(server.server, (one) => void answered.push(one));
    const listening = await listen(all, { port: 0, host: '127.0.0.1' });
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
      // Each is carried out, but for what this server does not allow, and answers what its description says.
      const done = new Set(answered.filter(({ status }) => status < 300).map(({ operation }) => operation));
      expect(OPERATIONS.map(({ id }) => id).filter((id) => !done.has(id))).toEqual(['pipeline.resume']);
      const { paths } = (await server.get('/openapi.json')).body as {
        paths: Record<string, Record<string, Described>>;
      };
      const described = Object.values(paths).flatMap((methods) => Object.values(methods));
      for (const { operation, status, body } of answered) {
        const of = described.find(({ operationId }) => operationId === operation) as Described;
        const { 'application/json': json } = of.responses[String(status)]?.content ?? {};
        const sent = json === undefined ? undefined : (JSON.parse(JSON.stringify(body)) as unknown);
        expect(json && misfit(json.schema, sent), `${operation} ${JSON.stringify(sent)}`).toBeUndefined();
        if (status >= 400) expect(codesOf(of, status)).toContain((body as { code: string }).code);
      }
    } finally {
      await listening.close();
      await server.close();
      rmSync(dir, { recursive: true, force: true });
    }
  });
});
