/**
 * Our messages are etcd's: each is compared with what the protocol's own description makes of it, as npm's `etcd3` brings
 * it along and as the whole protobuf library reads it.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import protobuf from 'protobufjs';
import { type Transaction, Value } from 'signalbox/store';
import { describe, expect, it } from 'vitest';
import { keyspace } from '../../src/store/etcd/keyspace.ts';
import {
  grantedLease,
  grantMessage,
  leaseMessage,
  leaseState,
  leaseStateMessage,
} from '../../src/store/etcd/wire/lease.ts';
import { readResult, revisionOf, transactionResult } from '../../src/store/etcd/wire/result.ts';
import { newWriter } from '../../src/store/etcd/wire/protobuf.ts';
import {
  authenticateMessage,
  compactMessage,
  countMessage,
  statusOf,
  tokenOf,
} from '../../src/store/etcd/wire/server.ts';
import { peersMessage, transactionMessage } from '../../src/store/etcd/wire/transaction.ts';
import { cancelWatch, createWatch, requestProgress, watchMessage } from '../../src/store/etcd/wire/watch.ts';

const proto = join(dirname(createRequire(import.meta.url).resolve('etcd3/package.json')), 'proto', 'rpc.proto');
const description = protobuf.loadSync(proto);
const keys = keyspace('', '');
const bytes = (text: string): Uint8Array => Buffer.from(text);
/** Beyond what a number of JavaScript can tell from its neighbours. */
const LARGE = '7587879142103912847';

function encoded(type: string, content: object): Uint8Array {
  const described = description.lookupType(`etcdserverpb.${type}`);
  return described.encode(described.fromObject(content)).finish();
}

function decoded(type: string, message: Uint8Array): object {
  const described = description.lookupType(`etcdserverpb.${type}`);
  return described.toObject(described.decode(message), { longs: String, enums: String, bytes: String, defaults: true });
}

/** Says what `content` says, however it is written. */
function expectSame(type: string, message: Uint8Array, content: object): void {
  expect(decoded(type, message)).toEqual(decoded(type, encoded(type, content)));
}

describe('what we send is what etcd reads', () => {
  it('comparisons', () => {
    const transaction: Transaction = {
      compare: [
        { key: 'v', target: 'version', is: '=', than: 0 },
        { key: 'c', end: 'd', target: 'create', is: '<', than: 2 ** 40 + 1 },
        { key: 'm', target: 'mod', is: '>', than: 300 },
        { key: 'é', target: 'value', is: '!=', than: '☃' },
        { key: 'e', target: 'value', is: '=', than: '' },
        { key: 'l', target: 'lease', is: '=', than: LARGE },
        { key: 'n', target: 'lease', is: '!=', than: null },
      ],
      success: [],
      failure: [],
    };
    expectSame('TxnRequest', transactionMessage(transaction, keys), {
      compare: [
        { key: bytes('v'), target: 'Version', result: 'Equal', version: 0 },
        { key: bytes('c'), rangeEnd: bytes('d'), target: 'Create', result: 'Less', createRevision: 2 ** 40 + 1 },
        { key: bytes('m'), target: 'Mod', result: 'Greater', modRevision: 300 },
        { key: bytes('é'), target: 'Value', result: 'NotEqual', value: bytes('☃') },
        { key: bytes('e'), target: 'Value', result: 'Equal', value: bytes('') },
        { key: bytes('l'), target: 'Lease', result: 'Equal', lease: LARGE },
        { key: bytes('n'), target: 'Lease', result: 'NotEqual', lease: 0 },
      ],
    });
  });

  it('operations, nested ones too', () => {
    const long = 'x'.repeat(40_000);
    const transaction: Transaction = {
      compare: [],
      success: [
        { do: 'put', key: '𝄞', value: Value.text(long), lease: LARGE },
        { do: 'put', key: 'k', value: Value.json({ a: 1 }), lease: 'keep' },
        { do: 'put', key: 'free', value: Value.text('') },
        { do: 'delete', key: 'a', end: 'b' },
        { do: 'read', key: 'q', end: '\0', limit: 7 },
        { do: 'read', key: 'q', order: 'create' },
        { do: 'read', key: 'q', end: 'r', countOnly: true },
      ],
      failure: [{ do: 'transaction', compare: [], success: [{ do: 'read', key: 'z' }], failure: [] }],
    };
    expectSame('TxnRequest', transactionMessage(transaction, keys), {
      success: [
        { requestPut: { key: bytes('𝄞'), value: bytes(long), lease: LARGE } },
        { requestPut: { key: bytes('k'), value: bytes('{"a":1}'), ignoreLease: true } },
        { requestPut: { key: bytes('free'), value: bytes('') } },
        { requestDeleteRange: { key: bytes('a'), rangeEnd: bytes('b') } },
        { requestRange: { key: bytes('q'), rangeEnd: bytes('\0'), limit: 7 } },
        { requestRange: { key: bytes('q'), sortOrder: 'Ascend', sortTarget: 'Create' } },
        { requestRange: { key: bytes('q'), rangeEnd: bytes('r'), countOnly: true } },
      ],
      failure: [{ requestTxn: { success: [{ requestRange: { key: bytes('z') } }] } }],
    });
  });

  it.each(['7387894723462', LARGE, '9223372036854775807', '1'])('lease %s', (id) => {
    expectSame('LeaseRevokeRequest', leaseMessage(id), { ID: id });
    expectSame('LeaseTimeToLiveRequest', leaseStateMessage(id), { ID: id, keys: true });
  });

  it.each(['0', '', 'no', '-1', '1.5', '9223372036854775808', '99999999999999999999', '007'])(
    'what cannot be a lease, such as %j, is sent as one that nobody has',
    (id) => {
      expectSame('LeaseRevokeRequest', leaseMessage(id), { ID: '-1' });
    },
  );

  it('times, in whole seconds upward', () => {
    expectSame('LeaseGrantRequest', grantMessage(1), { TTL: 1 });
    expectSame('LeaseGrantRequest', grantMessage(15_001), { TTL: 16 });
  });

  it('watches, their end, and the wish for a sign of life', () => {
    const asked = { key: bytes('a'), rangeEnd: bytes('b'), startRevision: 2 ** 33, watchId: 3 };
    const inner = encoded('WatchCreateRequest', asked);
    // Of etcd 3.4, which this description is older than: field 8, true, asks for fragments.
    const whole = [0x0a, inner.length + 2, ...inner, 0x40, 1];
    expect([...createWatch(3, { key: 'a', end: 'b' }, 2 ** 33, keys)]).toEqual(whole);
    expectSame('WatchRequest', cancelWatch(300), { cancelRequest: { watchId: 300 } });
    // Of etcd 3.4 too: field 3, empty.
    expect([...requestProgress()]).toEqual([0x1a, 0x00]);
  });

  it('reads of one revision, compaction and logins', () => {
    expectSame('RangeRequest', peersMessage({ key: 'q', end: 'r' }, 5, 9, keys), {
      ...{ key: bytes('q'), rangeEnd: bytes('r'), revision: 9, minCreateRevision: 5, maxCreateRevision: 5 },
    });
    expectSame('RangeRequest', countMessage('\0', 12), { key: bytes('\0'), revision: 12, countOnly: true });
    expectSame('CompactionRequest', compactMessage(77), { revision: 77 });
    expectSame('AuthenticateRequest', authenticateMessage('me', 'ßecret'), { name: 'me', password: 'ßecret' });
  });
});

describe('what etcd sends is what we read', () => {
  const header = { clusterId: LARGE, memberId: LARGE, revision: 2 ** 35 + 5, raftTerm: 7 };

  it('the answer to a transaction', () => {
    const pair = {
      key: bytes('é'),
      value: bytes('☃'),
      createRevision: 5,
      modRevision: 2 ** 35,
      version: 200,
      lease: LARGE,
    };
    const message = encoded('TxnResponse', {
      header,
      succeeded: true,
      responses: [
        { responsePut: { header } },
        { responseDeleteRange: { header, deleted: 300 } },
        { responseRange: { header, kvs: [pair, { key: bytes('b'), modRevision: 1 }], more: true, count: 1000 } },
        { responseTxn: { header, responses: [{ responsePut: {} }] } },
      ],
    });
    const { succeeded, revision, results } = transactionResult(message, keys);
    expect([succeeded, revision]).toEqual([true, 2 ** 35 + 5]);
    const read = results[2];
    if (read?.do !== 'read') throw new Error('no read');
    expect(read.pairs.map(({ value, ...rest }) => ({ ...rest, text: value.text }))).toEqual([
      { key: 'é', text: '☃', createRevision: 5, modRevision: 2 ** 35, version: 200, lease: LARGE },
      { key: 'b', text: '', createRevision: 0, modRevision: 1, version: 0, lease: null },
    ]);
    expect([read.more, read.count]).toEqual([true, 2]);
    expect([results[0], results[1], results[3]]).toEqual([
      { do: 'put' },
      { do: 'delete', deleted: 300 },
      { do: 'transaction', succeeded: false, results: [{ do: 'put' }] },
    ]);
  });

  it('events, by revision', () => {
    const kv = (key: string, modRevision: number): object => ({ key: bytes(key), modRevision, createRevision: 1 });
    const message = encoded('WatchResponse', {
      header,
      watchId: 4,
      events: [
        { type: 'Put', kv: kv('a', 7) },
        { type: 'Delete', kv: kv('b', 7) },
        { type: 'Put', kv: kv('a', 9) },
      ],
    });
    const { id, changes } = watchMessage(message, keys);
    expect(id).toBe(4);
    expect(changes.map(({ revision, changes: all }) => [revision, all.map(({ kind }) => kind)])).toEqual([
      [7, ['put', 'delete']],
      [9, ['put']],
    ]);
    expect(changes[0]?.changes[1]).toEqual({ kind: 'delete', key: 'b', revision: 7 });
  });

  it('the beginning and the end of a watch, and what is said to none', () => {
    const created = encoded('WatchResponse', { header, watchId: 1, created: true });
    expect(watchMessage(created, keys)).toMatchObject({ id: 1, created: true, canceled: false, revision: 2 ** 35 + 5 });
    const over = encoded('WatchResponse', { header, watchId: 1, canceled: true, compactRevision: 44 });
    expect(watchMessage(over, keys)).toMatchObject({ canceled: true, compacted: 44 });
    expect(watchMessage(encoded('WatchResponse', { header, watchId: -1 }), keys).id).toBeGreaterThan(2 ** 53);
  });

  it('leases', () => {
    expect(grantedLease(encoded('LeaseGrantResponse', { header, ID: LARGE, TTL: 15 }))).toEqual({
      id: LARGE,
      ttlMs: 15_000,
    });
    expect(grantedLease(encoded('LeaseKeepAliveResponse', { header, ID: LARGE })).ttlMs).toBe(0);
    const state = { header, ID: LARGE, TTL: 3, grantedTTL: 15, keys: [bytes('signalbox/a'), bytes('/b'), bytes('c')] };
    expect(leaseState(encoded('LeaseTimeToLiveResponse', state), keyspace('signalbox/', '/'))).toEqual({
      ...{ id: LARGE, ttlMs: 15_000, remainingMs: 3000, keys: ['/b', 'a'] },
    });
    expect(leaseState(encoded('LeaseTimeToLiveResponse', { header, ID: LARGE, TTL: -1 }), keys)).toBeNull();
  });

  it('a token, and the state of a server', () => {
    expect(tokenOf(encoded('AuthenticateResponse', { header, token: 'abc.7' }))).toBe('abc.7');
    const status = { header, version: '3.4.23', dbSize: 20_480, leader: LARGE };
    expect(statusOf(encoded('StatusResponse', status))).toEqual({
      ...{ version: '3.4.23', databaseBytes: 20_480, hasLeader: true, errors: [] },
    });
  });

  it('fields that a later etcd may add are passed over', () => {
    const later = Buffer.concat([
      encoded('TxnResponse', { header, succeeded: true }),
      Buffer.from([0xfa, 0x3e, 1, 9, 0xf8, 0x3e, 5]),
    ]);
    expect(transactionResult(later, keys)).toMatchObject({ succeeded: true, results: [] });
  });

  it('nothing that is cut off or garbled passes for an answer', () => {
    const whole = encoded('TxnResponse', { responses: [{ responseRange: { kvs: [{ key: bytes('abc') }] } }] });
    expect(() => transactionResult(whole.subarray(0, -2), keys)).toThrow(RangeError);
    expect(() => transactionResult(Uint8Array.of(0x0a, 0x80), keys)).toThrow(RangeError);
  });
});

describe('numbers', () => {
  const leaseOf = (id: string): string => grantedLease(encoded('LeaseGrantResponse', { ID: id, TTL: 1 })).id;

  it('of 64 bits are read to the last bit, up to the largest and down to the least', () => {
    const ids = ['1', '127', '128', '9007199254740991', '9007199254740993', LARGE, String(2n ** 63n - 1n)];
    for (const id of [...ids, '-1', String(-(2n ** 63n)), String(-(2n ** 63n) + 1n)]) expect(leaseOf(id)).toBe(id);
  });

  it('are written to the last bit', () => {
    for (const id of ['1', '9007199254740993', String(2n ** 63n - 1n)])
      expect(decoded('LeaseRevokeRequest', leaseMessage(id))).toMatchObject({ ID: id });
  });

  it('that are counted are exact up to 2^53, and what is negative is beyond all that is counted', () => {
    const revisionOf = (revision: number | string): number =>
      transactionResult(encoded('TxnResponse', { header: { revision } }), keys).revision;
    for (const revision of [0, 1, 2 ** 31, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER])
      expect(revisionOf(revision)).toBe(revision);
    expect(revisionOf('-1')).toBeGreaterThan(2 ** 63);
  });
});

describe('an answer that would keep us busy for ever', () => {
  const DECODERS = {
    grantedLease,
    leaseState: (message: Uint8Array) => leaseState(message, keys),
    transactionResult: (message: Uint8Array) => transactionResult(message, keys),
    watchMessage: (message: Uint8Array) => watchMessage(message, keys),
    statusOf,
    tokenOf,
    revisionOf,
  };
  /** A number of half a million bytes: the bits of it took minutes to add up. */
  const endless = (...tags: readonly number[]): Uint8Array =>
    Buffer.concat([Buffer.from(tags), Buffer.alloc(500_000, 0xff), Buffer.from([1])]);

  it.each(Object.entries(DECODERS))('is refused at the eleventh byte of a number by %s', (_, decode) => {
    // As its own fields, as one that it does not know, as a tag, and as a length.
    for (const tag of [0x08, 0x10, 0x18, 0x20, 0x28, 0x78, 0x0a, 0x12, 0x7a]) {
      expect(() => decode(endless(tag))).toThrow();
    }
    expect(() => decode(endless())).toThrow(/varint/);
  });

  it.each(Object.entries(DECODERS))('has no groups in it, nested or not, by %s', (_, decode) => {
    expect(() => decode(Buffer.alloc(500_000, 0x7b))).toThrow('a field of kind 3');
  });

  it('is not nested deeper than any question of ours', () => {
    let message: Uint8Array = new Uint8Array();
    for (let depth = 0; depth < 200; depth++) {
      const operation = newWriter().uint32(0x22).bytes(message).finish();
      message = newWriter().uint32(0x1a).bytes(operation).finish();
    }
    expect(() => transactionResult(message, keys)).toThrow('nested more than 128 deep');
  });

  it('has no more parts than fit into memory, however short they are', () => {
    const many = (part: Uint8Array): Uint8Array => Buffer.alloc(1_000_001 * part.length, part);
    const short = Buffer.from([0x2a, 1, 0x61]);
    expect(() => leaseState(many(short), keys)).toThrow('more than 1000000 entries');
    expect(() => transactionResult(many(Buffer.from([0x1a, 0])), keys)).toThrow('more than 128 results');
    expect(() => watchMessage(many(Buffer.from([0x5a, 0])), keys)).toThrow('an event without a key');
    expect(() => readResult(many(Buffer.from([0x12, 0])), keys)).toThrow('a pair without a key');
    expect(() => statusOf(many(Buffer.from([0x42, 0])))).toThrow('more than 1000 alarms');
  });

  it('has no part that is longer than what it is part of', () => {
    const pair = newWriter().uint32(0x0a).string('key').finish();
    const cut = Buffer.concat([Buffer.from([0x12, pair.length - 2]), pair]);
    expect(() => readResult(cut, keys)).toThrow('longer than the message');
  });
});
