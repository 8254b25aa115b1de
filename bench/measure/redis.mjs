/** A Redis of the bench's own: on a free port of this machine, in memory only, gone when it is stopped. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** `undefined` if there is none to start. */
export async function startRedis() {
  const port = await freePort();
  const server = spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--daemonize', 'no'],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const killAtExit = () => server.kill('SIGKILL');
  process.once('exit', killAtExit);
  const started = await new Promise((resolve, reject) => {
    server.once('error', (error) => (error.code === 'ENOENT' ? resolve(false) : reject(error)));
    server.once('exit', (code) => reject(new Error(`redis-server ended with ${code}`)));
    server.stdout.setEncoding('utf8').on('data', (text) => {
      if (text.includes('Ready to accept connections')) resolve(true);
    });
  });
  if (!started) return undefined;
  return {
    port,
    async stop() {
      process.off('exit', killAtExit);
      const gone = once(server, 'exit');
      server.kill('SIGKILL');
      await gone;
    },
  };
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
