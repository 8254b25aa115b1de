/** A server that answers with what is nearly HTTP/2 and nearly etcd's: every call ends, with a named failure or an answer. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { openEtcdUrl, type Operation, Value } from 'signalbox/store';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { BEGIN, block, FLAG, frame, headers, KIND, message, numbers } from '../grpc/scripted-peer.ts';

const SEEDS = [1, 2, 3, 4];
const ROUNDS = 12;
const CODES = ['unavailable', 'outcome-unknown', 'invalid', 'corrupt', 'forbidden', 'not-found', 'compacted'];

/** The same for the same seed. */
function chance(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return Math.floor((state / 0x8000_0000) * below);
  };
}

const TXN = Buffer.from('0a0408011005100118011a1a12001a1608011a1200a0161100118012001' + '2a01620', 'hex');
const SETTINGS = Buffer.from('000300000064000400010000', 'hex');

class Babbler {
  readonly #random: (below: number) => number;

  constructor(random: (below: number) => number) {
    this.#random = random;
  }

  greeting(): Buffer {
    return frame(KIND.settings, 0, 0, this.#random(4) > 0 ? [] : this.#spoilt(SETTINGS));
  }

  says(): Buffer {
    const random = this.#random;
    const id = random(6) > 0 ? 1 + 2 * random(4) : random(12);
    const said = this.#parts(id);
    return random(6) === 0 ? this.#spoilt(Buffer.concat(said)) : Buffer.concat(said);
  }

  #parts(id: number): Buffer[] {
    const random = this.#random;
    const begin = block(BEGIN);
    switch (random(9)) {
      case 0: {
        const ended = headers(id, { 'grpc-status': '0' }, FLAG.endStream);
        return [headers(id, BEGIN), frame(KIND.data, 0, id, message(this.#spoilt(TXN))), ended];
      }
      case 1:
        return [
          frame(KIND.headers, FLAG.endHeaders, id, this.#spoilt(begin)),
          frame(KIND.data, random(16), id, this.#spoilt(message(TXN))),
        ];
      case 2:
        return [frame(random(12), random(256), random(10), this.#noise(random(40)))];
      case 3:
        return [frame(KIND.reset, 0, id, numbers([random(14), 4]))];
      case 4:
        return [frame(KIND.goAway, 0, 0, numbers([random(9), 4], [random(14), 4]))];
      case 5:
        return [frame(KIND.window, 0, random(2) * id, this.#noise(4))];
      case 6: {
        const pairs = Array.from({ length: random(5) }, () => numbers([1 + random(7), 2], [random(2 ** 31), 4]));
        return [frame(KIND.settings, 0, 0, Buffer.concat(pairs))];
      }
      case 7: {
        const piece = begin.subarray(0, random(begin.length));
        return [
          frame(KIND.headers, 0, id, piece),
          frame(KIND.continuation, random(2) * 4, id, this.#noise(random(20))),
        ];
      }
      default:
        return [headers(id, { 'grpc-status': String(random(18)) }, FLAG.endStream)];
    }
  }

  #spoilt(bytes: Buffer): Buffer {
    const random = this.#random;
    let spoilt = Buffer.from(bytes);
    for (let times = random(4); times > 0; times--) spoilt[random(spoilt.length)] = random(256);
    if (random(5) === 0) spoilt = spoilt.subarray(0, random(spoilt.length + 1));
    return random(8) === 0 ? Buffer.concat([spoilt, this.#noise(random(30))]) : spoilt;
  }

  #noise(size: number): Buffer {
    return Buffer.from(Array.from({ length: size }, () => this.#random(256)));
  }
}

let server: Server;
const sockets = new Set<Socket>();
let random = chance(0);

beforeAll(async () => {
  server = createServer((socket) => {
    sockets.add(socket);
    const babbler = new Babbler(random);
    let heard = 0;
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', () => {
      if (++heard > 30) return socket.destroy();
      for (let times = 1 + random(4); times > 0; times--) {
        const said = babbler.says();
        // Torn apart, at once or in another turn.
        const cut = random(said.length);
        socket.write(said.subarray(0, cut));
        if (random(2) === 0) socket.write(said.subarray(cut));
        else setImmediate(() => socket.destroyed || socket.write(said.subarray(cut)));
      }
    });
    socket.write(babbler.greeting());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  server.close();
});

it.each(SEEDS)('whatever a server says, each call ends once, and says what is known of it (seed %i)', async (seed) => {
  random = chance(seed);
  const odd: unknown[] = [];
  const note = (error: unknown): void => void odd.push(error);
  process.on('uncaughtException', note);
  const { port } = server.address() as AddressInfo;
  await Promise.all(
    Array.from({ length: ROUNDS }, async () => {
      const store = await openEtcdUrl(`etcd://127.0.0.1:${port}`, { requestTimeoutMs: 60 });
      const over = new AbortController();
      const write: Operation = { do: 'put', key: 'a', value: Value.text('b') };
      const watching = store
        .watch({ key: 'a', end: 'b' }, 'now', over.signal)
        .then(async (watch) => {
          for await (const changes of watch) void changes;
        })
        .catch((error: { code?: string }) => CODES.includes(error.code ?? '') || over.signal.aborted || note(error));
      const asked = [
        store.transaction({ compare: [], success: [write], failure: [] }),
        store.transaction({ compare: [], success: [{ do: 'read', key: 'a' }], failure: [] }),
        ...[store.grantLease(2000), store.keepLeaseAlive('77'), store.leaseState('77'), store.health()],
      ];
      for (const outcome of await Promise.allSettled(asked)) {
        if (outcome.status === 'fulfilled') continue;
        if (!CODES.includes((outcome.reason as { code?: string }).code ?? '')) odd.push(outcome.reason);
      }
      over.abort();
      await watching;
      await store.close();
    }),
  );
  process.off('uncaughtException', note);
  expect(odd).toEqual([]);
});
