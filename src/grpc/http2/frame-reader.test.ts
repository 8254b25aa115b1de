import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FrameReader, FrameTooLong } from './frame-reader.ts';
import { FRAME_HEAD, MAX_PAYLOAD, writeFrameHead } from './frames.ts';

interface Read {
  readonly kind: number;
  readonly flags: number;
  readonly id: number;
  readonly payload: string;
}

const frame = fc.record({
  kind: fc.nat(255),
  flags: fc.nat(255),
  id: fc.nat(2 ** 31 - 1),
  payload: fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.uint8Array({ minLength: 200, maxLength: 300 })),
});

function bytesOf(frames: readonly { kind: number; flags: number; id: number; payload: Uint8Array }[]): Buffer {
  return Buffer.concat(
    frames.map(({ kind, flags, id, payload }) => {
      const head = Buffer.alloc(FRAME_HEAD);
      writeFrameHead(head, 0, payload.length, kind, flags, id);
      return Buffer.concat([head, payload]);
    }),
  );
}

function readAll(chunks: readonly Buffer[]): Read[] {
  const frames: Read[] = [];
  const reader = new FrameReader((kind, flags, id, bytes, at, end) =>
    frames.push({ kind, flags, id, payload: bytes.toString('hex', at, end) }),
  );
  for (const chunk of chunks) reader.read(chunk);
  return frames;
}

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [0, ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end));
}

describe('the frames of a connection', () => {
  it('are the same however the network splits them', () => {
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 8 }), fc.array(fc.nat(), { maxLength: 30 }), (frames, places) => {
        const expected = frames.map((each) => ({ ...each, payload: Buffer.from(each.payload).toString('hex') }));
        const bytes = bytesOf(frames);
        expect(readAll(cut(bytes, places))).toEqual(expected);
        expect(readAll(cut(bytes, [...bytes.keys()]))).toEqual(expected);
      }),
    );
  });

  it('are refused when they are longer than agreed, before anything is kept of them', () => {
    const head = Buffer.alloc(FRAME_HEAD);
    writeFrameHead(head, 0, MAX_PAYLOAD + 1, 0, 0, 1);
    for (const places of [[], [1], [2, 5], [...head.keys()]]) {
      expect(() => readAll(cut(head, places))).toThrow(FrameTooLong);
    }
  });

  it('are not handed on any more once nobody wants them, not even those that are already here', () => {
    const bytes = bytesOf([1, 2, 3].map((id) => ({ kind: 0, flags: 0, id, payload: Buffer.from('x') })));
    const ids: number[] = [];
    const reader = new FrameReader((_, __, id) => {
      ids.push(id);
      if (id === 2) reader.stop();
    });
    reader.read(bytes);
    reader.read(bytes);
    expect(ids).toEqual([1, 2]);
  });
});
