/** Finds the users that listen on a port of this machine, on Linux. */
import { readFileSync } from 'node:fs';
import { ifPossible } from '../../host/index.ts';

interface Socket {
  /** `127.0.0.1`; of IPv6 eight groups: `0:0:0:0:0:0:0:1`. */
  readonly address: string;
  readonly port: number;
  readonly uid: number;
}

const ANY_4 = '0.0.0.0';
const ANY_6 = '0:0:0:0:0:0:0:0';
const LOOPBACK_6 = '0:0:0:0:0:0:0:1';

export class Listening {
  readonly #sockets: readonly Socket[];

  /** `tcp`, `tcp6`: what the files of these names in /proc/net say. */
  constructor(tcp: string, tcp6: string) {
    this.#sockets = [...socketsIn(tcp, fourOf), ...socketsIn(tcp6, sixOf)];
  }

  /** Undefined where the system does not say. */
  static now(this: void): Listening | undefined {
    const [four, six] = ['/proc/net/tcp', '/proc/net/tcp6'].map((file) => ifPossible(() => readFileSync(file, 'utf8')));
    // A machine without IPv6 has no file of its sockets.
    return four === undefined ? undefined : new Listening(four, six ?? '');
  }

  /** The users of all sockets that a connection to this host may end up at; `localhost` is both kinds of loopback. */
  usersAt(host: string, port: number): readonly number[] {
    const addresses = host === 'localhost' ? ['127.0.0.1', '::1'] : [host];
    const meant = new Set(addresses.flatMap(accepting));
    return this.#sockets.filter((socket) => socket.port === port && meant.has(socket.address)).map(({ uid }) => uid);
  }
}

/** The addresses of sockets that accept a connection to this one. */
function accepting(address: string): readonly string[] {
  if (address.includes(':')) return [LOOPBACK_6, ANY_6];
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
  const mapped = `0:0:0:0:0:ffff:${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  return [address, ANY_4, mapped, ANY_6];
}

/** `  0: 0100007F:1C84 00000000:0000 0A … uid`: 0A is a socket that listens. */
function socketsIn(text: string, addressOf: (hex: string) => string): readonly Socket[] {
  return text.split('\n').flatMap((line) => {
    const [, local = '', , state, , , , uid] = line.trim().split(/\s+/);
    if (state !== '0A') return [];
    const [address = '', port = ''] = local.split(':');
    return [{ address: addressOf(address), port: Number.parseInt(port, 16), uid: Number(uid) }];
  });
}

/** As the machine has it in memory: the last byte first. */
function bytesOf(hex: string): readonly number[] {
  const words = hex.match(/.{8}/g) ?? [];
  return words.flatMap((word) => [6, 4, 2, 0].map((at) => Number.parseInt(word.slice(at, at + 2), 16)));
}

function fourOf(hex: string): string {
  return bytesOf(hex).join('.');
}

function sixOf(hex: string): string {
  const bytes = bytesOf(hex);
  return Array.from({ length: 8 }, (_, at) =>
    (((bytes[2 * at] ?? 0) << 8) | (bytes[2 * at + 1] ?? 0)).toString(16),
  ).join(':');
}
