/** The few messages of etcd that the tests of its transports send, written out by hand, so that nothing of ours vouches for itself. */

export const PUT = '/etcdserverpb.KV/Put';
export const RANGE = '/etcdserverpb.KV/Range';
export const TXN = '/etcdserverpb.KV/Txn';
export const WATCH = '/etcdserverpb.Watch/Watch';

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return [...bytes, rest];
}

function field(number: number, value: string | Uint8Array): Buffer {
  const bytes = Buffer.from(value as string);
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...varint(bytes.length)]), bytes]);
}

function numberField(number: number, value: number): Buffer {
  return Buffer.from([number << 3, ...varint(value)]);
}

export function putRequest(key: string, value: string | Uint8Array): Buffer {
  return Buffer.concat([field(1, key), field(2, value)]);
}

/** Without `end`, one key. */
export function rangeRequest(key: string, end?: string, revision?: number): Buffer {
  return Buffer.concat([
    field(1, key),
    ...(end === undefined ? [] : [field(2, end)]),
    ...(revision === undefined ? [] : [numberField(4, revision)]),
  ]);
}

/** If the key is there in any version, or in none: put it. */
export function txnRequest(key: string, value: string): Buffer {
  // Version (0), greater (1) than -1, which is ten bytes long.
  const minusOne = Buffer.from([4 << 3, ...Array<number>(9).fill(0xff), 1]);
  const compare = Buffer.concat([numberField(1, 1), numberField(2, 0), field(3, key), minusOne]);
  return Buffer.concat([field(1, compare), field(2, field(2, putRequest(key, value)))]);
}

export function watchRequest(key: string): Buffer {
  return field(1, field(1, key));
}
