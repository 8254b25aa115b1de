// GitHub behind a proxy, which alone knows where the named host is: a real proxy, real TLS, and the command line.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Server } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { serveLocalGitHub, type LocalServer } from '../../src/github/local/serve.ts';
import { signalbox } from '../support/cli.ts';
import { makeCertificates } from '../support/etcd/certificates.ts';

const HOST = 'github.invalid';
const certificates = makeCertificates();
const servers: Server[] = [];
let github: LocalServer;
let proxy: string;
let tunnels = 0;

async function listening(server: Server): Promise<number> {
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

beforeAll(async () => {
  certificates.issue('github', HOST, `DNS:${HOST}`);
  github = await serveLocalGitHub();
  github.github.repository.addIssue(1, 'One', Date.now());
  const plain = Number(new URL(github.url).port);
  const [cert, key] = ['github.pem', 'github.key'].map((name) => readFileSync(certificates.file(name)));
  const secure = createTlsServer({ cert, key }, (socket) => {
    const there = connect(plain, '127.0.0.1');
    there.on('error', () => socket.destroy());
    socket.on('error', () => there.destroy());
    socket.pipe(there).pipe(socket);
  });
  const securePort = await listening(secure);
  const tunnelling = createServer((_, answer) => void answer.writeHead(405).end());
  tunnelling.on('connect', ({ url }, socket) => {
    if (url !== `${HOST}:443`) return void socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    tunnels += 1;
    const there = connect(securePort, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      there.pipe(socket).pipe(there);
    });
    there.on('error', () => socket.destroy());
    socket.on('error', () => there.destroy());
  });
  proxy = `http://127.0.0.1:${await listening(tunnelling)}`;
});

afterAll(async () => {
  await github.close();
  await Promise.all(servers.map((server) => new Promise((closed) => server.close(closed))));
  certificates.remove();
});

it('locks go through the proxy that the environment names, except where it says not to', async () => {
  const env = {
    ...{ GITHUB_REPO: 'local/repository', GITHUB_TOKEN: 'local', GITHUB_API_URL: `https://${HOST}/api/v3` },
    ...{
      NODE_EXTRA_CA_CERTS: certificates.file('ca.pem'),
      HTTPS_PROXY: proxy,
      https_proxy: '',
      NO_PROXY: '',
      no_proxy: '',
    },
  };
  const lock = ['github', 'lock', '1', '--worker', 'w', '--strategy', 'fail-fast'];
  expect(await signalbox(lock, { env })).toMatchObject({ code: 0, stderr: '' });
  expect(tunnels).toBeGreaterThan(0);
  const seen = tunnels;
  const { code, stderr } = await signalbox(['github', 'status'], { env: { ...env, NO_PROXY: HOST } });
  expect(code).toBe(69);
  expect(stderr).toContain(HOST);
  expect(tunnels).toBe(seen);
});
