/**
 * A port for a server that is started by its number, or again on the same one. It is none of those that the system gives to
 * whoever asks for any port, or connects somewhere: while the server is away, nobody else gets it.
 */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

/** Above 10,080, which neither browsers nor Node's fetch speak to. */
const LOWEST = 11_000;

export async function freePort(host = '127.0.0.1'): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST, firstOfTheSystem());
    if (await isFree(port, host)) return port;
  }
}

/** Several at once, so that none is another. */
export async function freePorts(count: number, host?: string): Promise<readonly number[]> {
  const ports = new Set<number>();
  while (ports.size < count) ports.add(await freePort(host));
  return [...ports];
}

function firstOfTheSystem(): number {
  try {
    const first = Number.parseInt(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8'), 10);
    return first > 2 * LOWEST ? first : 32_768;
  } catch {
    // macOS and Windows begin at 49,152.
    return 49_152;
  }
}

async function isFree(port: number, host: string): Promise<boolean> {
  const server = createServer();
  const listening = once(server.listen(port, host), 'listening').then(
    () => true,
    () => false,
  );
  if (!(await listening)) return false;
  await new Promise((resolve) => server.close(resolve));
  return true;
}
