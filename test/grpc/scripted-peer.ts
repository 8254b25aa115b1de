/** A peer that says exactly what the test wants, on a socket that is none: so that every byte, and every split, can be chosen. */
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { type Clock, systemClock } from '../../src/clock.ts';
import { Http2Connection } from '../../src/grpc/http2/connection.ts';
import type { CallFailure } from '../../src/grpc/transport.ts';

export interface Frame {
  readonly kind: number;
  readonly flags: number;
  readonly id: number;
  readonly payload: Buffer;
}

export const KIND = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goAway: 7,
  window: 8,
  continuation: 9,
} as const;
export const FLAG = { ack: 1, endStream: 1, endHeaders: 4, padded: 8, priority: 0x20 } as const;

export function frame(kind: number, flags: number, id: number, payload: Uint8Array | readonly number[] = []): Buffer {
  const bytes = Buffer.from(payload);
  const head = Buffer.alloc(9);
  head.writeUIntBE(bytes.length, 0, 3);
  head[3] = kind;
  head[4] = flags;
  head.writeUInt32BE(id, 5);
  return Buffer.concat([head, bytes]);
}

export function settings(...pairs: readonly (readonly [number, number])[]): Buffer {
  return frame(KIND.settings, 0, 0, Buffer.concat(pairs.map(([setting, value]) => numbers([setting, 2], [value, 4]))));
}

/** Each value in so many bytes. */
export function numbers(...parts: readonly (readonly [value: number, bytes: number])[]): Buffer {
  return Buffer.concat(
    parts.map(([value, bytes]) => {
      const part = Buffer.alloc(bytes);
      part.writeUIntBE(value, 0, bytes);
      return part;
    }),
  );
}

/** Every field spelt out, and none to be remembered. */
export function block(fields: Readonly<Record<string, string>>): Buffer {
  return Buffer.concat(
    Object.entries(fields).map(([name, value]) =>
      Buffer.concat([
        Buffer.from([0, name.length]),
        Buffer.from(name),
        Buffer.from([value.length]),
        Buffer.from(value),
      ]),
    ),
  );
}

export function headers(id: number, fields: Readonly<Record<string, string>>, flags = 0): Buffer {
  return frame(KIND.headers, FLAG.endHeaders | flags, id, block(fields));
}

export const BEGIN = { ':status': '200', 'content-type': 'application/grpc' };

export function message(content: Uint8Array | string): Buffer {
  const bytes = Buffer.from(content as string);
  return Buffer.concat([numbers([0, 1], [bytes.length, 4]), bytes]);
}

/** The whole answer to a call. */
export function answer(id: number, content: Uint8Array | string): Buffer {
  return Buffer.concat([
    headers(id, BEGIN),
    frame(KIND.data, 0, id, message(content)),
    headers(id, { 'grpc-status': '0' }, FLAG.endStream),
  ]);
}

/** All that was written so far, as frames; without the preface. */
export function framesOf(bytes: Buffer): Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = at + 9 + bytes.readUIntBE(at, 3);
    const [kind, flags] = [bytes[at + 3]!, bytes[at + 4]!];
    frames.push({ kind, flags, id: bytes.readUInt32BE(at + 5), payload: bytes.subarray(at + 9, end) });
    at = end;
  }
  return frames;
}

export const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

class FakeSocket extends Duplex {
  readonly writes: Buffer[] = [];
  isReferenced = true;
  /** A write is not done before the test says so. */
  pending: (() => void) | undefined;
  isStuck = false;

  override _read(): void {
    // What comes is said by the test.
  }

  override _write(chunk: Buffer, _: string, done: () => void): void {
    // As a socket does: what it took at once is gone, and what it could not take yet is still where it was.
    this.writes.push(this.isStuck ? chunk : Buffer.from(chunk));
    if (this.isStuck) this.pending = done;
    else done();
  }

  unstick(): void {
    this.isStuck = false;
    this.pending?.();
  }

  ref(): this {
    this.isReferenced = true;
    return this;
  }

  unref(): this {
    this.isReferenced = false;
    return this;
  }
}

interface ScriptedOptions {
  readonly firstId?: number;
  readonly pingMs?: number;
  readonly clock?: Clock;
}

export class ScriptedPeer {
  readonly socket = new FakeSocket();
  readonly closed: CallFailure[] = [];
  readonly connection: Http2Connection;
  isOpen = false;

  constructor(options: ScriptedOptions = {}) {
    this.connection = new Http2Connection(this.socket as unknown as Socket, {
      server: 'etcd.test:2379',
      clock: options.clock ?? systemClock,
      isSecure: false,
      pingMs: options.pingMs ?? 60_000,
      firstId: options.firstId,
      onOpen: () => (this.isOpen = true),
      onClose: (failure) => this.closed.push(failure),
    });
  }

  /** One that has said its settings. */
  static open(options: ScriptedOptions = {}): ScriptedPeer {
    const peer = new ScriptedPeer(options);
    peer.says(settings());
    return peer;
  }

  /** As one chunk, heard at once. */
  says(...parts: readonly Buffer[]): void {
    this.socket.emit('data', Buffer.concat(parts));
  }

  /** What it has heard, once the current turn is over. */
  async heard(): Promise<Frame[]> {
    await turn();
    return framesOf(Buffer.concat(this.socket.writes).subarray(PREFACE.length));
  }
}

/** Until everything that is to happen in this turn of the event loop has happened. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
