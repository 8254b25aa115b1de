import { describe, expect, it } from 'vitest';
import { HeaderDecoder } from './decoder.ts';
import { HeaderEncoder } from './encoder.ts';

function reader(): (block: Buffer) => Record<string, string> {
  const decoder = new HeaderDecoder();
  return (block) => {
    const fields: Record<string, string> = {};
    decoder.decode(block, 0, block.length, { field: (name, value) => (fields[name] = value) });
    return fields;
  };
}

const COMMON = {
  ':method': 'POST',
  ':scheme': 'http',
  ':authority': 'grpc.test:2379',
  te: 'trailers',
  'content-type': 'application/grpc',
};

describe('the headers of a call', () => {
  it('are what a gRPC server expects, for every path in any order', () => {
    const encoder = new HeaderEncoder('http', 'grpc.test:2379');
    const read = reader();
    for (const path of ['/a', '/b', '/a', '/c', '/b', '/c', '/a']) {
      expect(read(encoder.block(path, undefined))).toEqual({ ...COMMON, ':path': path });
    }
  });

  it('are a few bytes, and always the same ones, once the peer knows them', () => {
    const encoder = new HeaderEncoder('https', 'grpc.test:2379');
    for (const path of ['/package.Service/Txn', '/package.Service/Range']) encoder.block(path, undefined);
    const again = encoder.block('/package.Service/Txn', undefined);
    expect(again.length).toBe(6);
    expect(encoder.block('/package.Service/Txn', undefined)).toBe(again);
  });

  it('go on with paths that the peer has no more room to remember', () => {
    const encoder = new HeaderEncoder('http', 'grpc.test:2379');
    const read = reader();
    const paths = Array.from({ length: 200 }, (_, index) => `/some.long.service.name/Method${index}`);
    for (const path of [...paths, ...paths]) expect(read(encoder.block(path, undefined))[':path']).toBe(path);
  });

  it('carry what the caller adds, also when it changes', () => {
    const encoder = new HeaderEncoder('http', 'grpc.test:2379');
    const read = reader();
    const long = 'x'.repeat(1000);
    for (const headers of [{ token: 'one' }, { token: 'two', hasleader: 'true' }, undefined, { token: long }]) {
      for (let times = 0; times < 3; times++) {
        expect(read(encoder.block('/a', headers))).toEqual({ ...COMMON, ':path': '/a', ...headers });
      }
    }
  });

  it('let nobody remember a token: it is sent each time, and marked as not to be kept', () => {
    const encoder = new HeaderEncoder('http', 'grpc.test:2379');
    const headers = { token: 'secret' };
    for (let times = 0; times < 3; times++) {
      const block = encoder.block('/a', headers);
      expect(block.includes(Buffer.from([0x10, 5, ...Buffer.from('token'), 6, ...Buffer.from('secret')]))).toBe(true);
    }
  });

  it('are spelt out from the moment a peer says that it remembers nothing', () => {
    const encoder = new HeaderEncoder('http', 'grpc.test:2379');
    const read = reader();
    read(encoder.block('/a', undefined));
    encoder.limitTable(0);
    encoder.limitTable(4096);
    const first = encoder.block('/a', undefined);
    expect(first[0]).toBe(0x20);
    const blocks = [
      first,
      encoder.block('/a', undefined),
      encoder.block('/b', undefined),
      encoder.block('/a', undefined),
    ];
    expect(blocks.map((block) => read(block)[':path'])).toEqual(['/a', '/a', '/b', '/a']);
    // Nothing in it refers to a table that is empty.
    for (const block of blocks) expect(reader()(block)).toMatchObject(COMMON);
    expect(blocks[1]![0]).not.toBe(0x20);
  });
});
