/** An etcd of the test's own: on free ports of this machine, in a temporary directory, gone when it is stopped. */
import { rm } from 'node:fs/promises';
import { Member, onFreePorts, peerUrl, type Ports } from './member.ts';

export interface EtcdServer {
  readonly port: number;
  /** For TLS, where it was asked for. */
  readonly securePort: number;
  /** `kill -9`, and started again on the same data. */
  restart(): Promise<void>;
  /** `kill -9`, and started again on nothing. */
  startAnew(): Promise<void>;
  /** It stands still until it is resumed. */
  pause(): void;
  resume(): void;
  stop(): Promise<void>;
}

export interface EtcdOptions {
  /** Further flags of etcd itself. */
  readonly flags?: readonly string[];
  /** Files: it listens on another port too, over TLS, and wants to see a certificate of whoever comes there. */
  readonly tls?: { readonly ca: string; readonly cert: string; readonly key: string };
}

export function startEtcd(options: EtcdOptions = {}): Promise<EtcdServer> {
  return onFreePorts(2, ([ports, more]) => startOnce(ports as Ports, (more as Ports).client, options));
}

async function startOnce(ports: Ports, securePort: number, { flags = [], tls }: EtcdOptions): Promise<EtcdServer> {
  const member = await Member.prepare('default', ports, [
    ...['--initial-cluster', `default=${peerUrl(ports.peer)}`],
    // Alone it has nobody to wait for, so let it elect itself soon.
    ...['--heartbeat-interval', '20', '--election-timeout', '200'],
    ...(tls === undefined ? [] : tlsFlags(ports.client, securePort, tls)),
    ...flags,
  ]);
  try {
    await member.start();
  } catch (error) {
    await member.stop();
    throw error;
  }
  return {
    port: member.port,
    securePort,
    async restart() {
      await member.kill();
      await member.start();
    },
    async startAnew() {
      await member.kill();
      await rm(member.directory, { recursive: true });
      await member.start();
    },
    pause: () => member.pause(),
    resume: () => member.resume(),
    stop: () => member.stop(),
  };
}

function tlsFlags(port: number, securePort: number, { ca, cert, key }: NonNullable<EtcdOptions['tls']>): string[] {
  return [
    ...['--listen-client-urls', `http://127.0.0.1:${port},https://127.0.0.1:${securePort}`],
    ...['--cert-file', cert, '--key-file', key, '--trusted-ca-file', ca, '--client-cert-auth'],
  ];
}
