/** Our operations in the words of etcd's JSON gateway, and its answers in ours. Bytes travel as base64, int64 as text. */
import {
  type Change,
  type Compare,
  type KeyRange,
  type KeyValue,
  type Operation,
  type OperationResult,
  type Revision,
  type Transaction,
  type TransactionResult,
  Value,
} from 'signalbox/store';

export interface WirePair {
  readonly key: string;
  readonly value?: string;
  readonly create_revision?: string;
  readonly mod_revision?: string;
  readonly version?: string;
  readonly lease?: string;
}

export interface WireHeader {
  readonly revision?: string;
}

interface WireResponse {
  readonly response_put?: object;
  readonly response_delete_range?: { readonly deleted?: string };
  readonly response_range?: { readonly kvs?: readonly WirePair[]; readonly more?: boolean; readonly count?: string };
  readonly response_txn?: WireTransactionResult;
}

export interface WireTransactionResult {
  readonly header?: WireHeader;
  readonly succeeded?: boolean;
  readonly responses?: readonly WireResponse[];
}

export interface WireEvent {
  readonly type?: 'DELETE';
  readonly kv: WirePair;
}

export function toWire({ compare, success, failure }: Transaction): object {
  return { compare: compare.map(comparison), success: success.map(operation), failure: failure.map(operation) };
}

export function rangeToWire({ key, end }: KeyRange): object {
  return { key: bytes(key), ...(end === undefined ? {} : { range_end: bytes(end) }) };
}

const RESULT = { '=': 'EQUAL', '!=': 'NOT_EQUAL', '<': 'LESS', '>': 'GREATER' } as const;

function comparison(compare: Compare): object {
  const common = { ...rangeToWire(compare), result: RESULT[compare.is] };
  switch (compare.target) {
    case 'version':
      return { ...common, target: 'VERSION', version: String(compare.than) };
    case 'create':
      return { ...common, target: 'CREATE', create_revision: String(compare.than) };
    case 'mod':
      return { ...common, target: 'MOD', mod_revision: String(compare.than) };
    case 'value':
      return { ...common, target: 'VALUE', value: bytes(compare.than) };
    case 'lease':
      return { ...common, target: 'LEASE', lease: compare.than ?? '0' };
  }
}

function operation(each: Operation): object {
  switch (each.do) {
    case 'put': {
      const lease = each.lease === 'keep' ? { ignore_lease: true } : { lease: each.lease ?? '0' };
      return { request_put: { key: bytes(each.key), value: bytes(each.value.text), ...lease } };
    }
    case 'delete':
      return { request_delete_range: rangeToWire(each) };
    case 'read': {
      const order = each.order === 'create' ? { sort_target: 'CREATE', sort_order: 'ASCEND' } : {};
      const { limit = 0, countOnly = false } = each;
      return { request_range: { ...rangeToWire(each), ...order, limit: String(limit), count_only: countOnly } };
    }
    case 'transaction':
      return { request_txn: toWire(each) };
  }
}

export function resultFromWire(answer: WireTransactionResult): TransactionResult {
  return {
    succeeded: answer.succeeded ?? false,
    revision: Number(answer.header?.revision),
    results: (answer.responses ?? []).map(operationResult),
  };
}

function operationResult(response: WireResponse): OperationResult {
  const { response_delete_range: deletion, response_range: range, response_txn: inner } = response;
  if (deletion !== undefined) return { do: 'delete', deleted: Number(deletion.deleted ?? 0) };
  if (range !== undefined) {
    const { kvs = [], more = false, count = '0' } = range;
    // etcd counts the whole range, also where it gives a part of it. Where it gives no pairs, only the count was asked for.
    return { do: 'read', pairs: kvs.map(pair), more, count: kvs.length === 0 ? Number(count) : kvs.length };
  }
  if (inner !== undefined) {
    const { succeeded, results } = resultFromWire(inner);
    return { do: 'transaction', succeeded, results };
  }
  return { do: 'put' };
}

export function changeFromWire({ type, kv }: WireEvent): { readonly revision: Revision; readonly change: Change } {
  const revision = Number(kv.mod_revision);
  if (type === 'DELETE') return { revision, change: { kind: 'delete', key: text(kv.key), revision } };
  return { revision, change: { kind: 'put', pair: pair(kv) } };
}

function pair(kv: WirePair): KeyValue {
  return {
    key: text(kv.key),
    value: Value.text(text(kv.value ?? '')),
    createRevision: Number(kv.create_revision),
    modRevision: Number(kv.mod_revision),
    version: Number(kv.version),
    lease: kv.lease ?? null,
  };
}

function bytes(plain: string): string {
  return Buffer.from(plain, 'utf8').toString('base64');
}

export function text(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8');
}
