/**
 * A store on a real etcd, by its JSON gateway: the judge that our own engines are compared with, and nothing more. It is
 * for tests: one request at a time on a machine's own etcd, no retries, no fail-over, no limits on size. What users get
 * on etcd will be an engine of its own.
 */
import { Agent, type ClientRequest, request } from 'node:http';
import { text as wholeText } from 'node:stream/consumers';
import type {
  Health,
  KeyRange,
  Lease,
  LeaseState,
  Revision,
  Store,
  Transaction,
  TransactionResult,
} from 'signalbox/store';
import { Failure } from '../../../src/failure.ts';
import { checkCompaction, checkTransaction, checkTtl, checkWatch, checkWellFormed } from '../../../src/store/check.ts';
import { GatewayWatch } from './gateway-watch.ts';
import {
  rangeToWire,
  resultFromWire,
  text,
  toWire,
  type WireHeader,
  type WireTransactionResult,
} from './gateway-wire.ts';

interface WireLease {
  readonly ID: string;
  readonly TTL?: string;
  readonly grantedTTL?: string;
  readonly keys?: readonly string[];
}

export class GatewayStore implements Store {
  readonly #port: number;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #watches = new Set<GatewayWatch>();
  #closed = false;

  constructor(port: number) {
    this.#port = port;
  }

  async transaction(transaction: Transaction, signal?: AbortSignal): Promise<TransactionResult> {
    this.#check(signal);
    checkTransaction(transaction);
    checkPuts(transaction);
    return this.transactionUnchecked(transaction, signal);
  }

  /** As etcd itself sees it: what it refuses, and what it lets pass. */
  async transactionUnchecked(transaction: Transaction, signal?: AbortSignal): Promise<TransactionResult> {
    return resultFromWire((await this.#ask('kv/txn', toWire(transaction), signal)) as WireTransactionResult);
  }

  async watch(range: KeyRange, since: Revision | 'now', signal: AbortSignal): Promise<GatewayWatch> {
    this.#check(signal);
    checkWatch(range, since);
    // To etcd, 0 means from now on.
    const start = since === 'now' ? 0 : Math.max(1, since);
    const asked = this.#send('watch', { create_request: { ...rangeToWire(range), start_revision: String(start) } });
    const watch = await GatewayWatch.open(asked, since, signal);
    this.#watches.add(watch);
    asked.once('close', () => this.#watches.delete(watch));
    return watch;
  }

  async grantLease(ttlMs: number, signal?: AbortSignal): Promise<Lease> {
    this.#check(signal);
    checkTtl(ttlMs);
    const TTL = String(Math.ceil(ttlMs / 1000));
    return leaseFrom((await this.#ask('lease/grant', { TTL }, signal)) as WireLease);
  }

  async keepLeaseAlive(id: string, signal?: AbortSignal): Promise<Lease | null> {
    this.#check(signal);
    const { result } = (await this.#ask('lease/keepalive', { ID: id }, signal)) as { readonly result: WireLease };
    return result.TTL === undefined ? null : leaseFrom(result);
  }

  async revokeLease(id: string, signal?: AbortSignal): Promise<void> {
    this.#check(signal);
    try {
      await this.#ask('lease/revoke', { ID: id }, signal);
    } catch (error) {
      if (!Failure.is(error, 'not-found')) throw error;
    }
  }

  async leaseState(id: string, signal?: AbortSignal): Promise<LeaseState | null> {
    this.#check(signal);
    const state = (await this.#ask('lease/timetolive', { ID: id, keys: true }, signal)) as WireLease;
    if (state.grantedTTL === undefined) return null;
    return {
      id: state.ID,
      ttlMs: 1000 * Number(state.grantedTTL),
      remainingMs: 1000 * Number(state.TTL ?? 0),
      keys: (state.keys ?? []).map(text),
    };
  }

  async leases(): Promise<string[]> {
    const { leases = [] } = (await this.#ask('lease/leases', {})) as { readonly leases?: readonly WireLease[] };
    return leases.map((lease) => lease.ID);
  }

  async compact(revision: Revision, signal?: AbortSignal): Promise<void> {
    this.#check(signal);
    checkCompaction(revision, Number.POSITIVE_INFINITY);
    await this.#ask('kv/compaction', { revision: String(revision) }, signal);
  }

  async health(signal?: AbortSignal): Promise<Health> {
    this.#check(signal);
    const { header } = (await this.#ask('kv/range', rangeToWire({ key: '\0' }), signal)) as { header: WireHeader };
    const revision = Number(header.revision);
    return { revision, compacted: await this.#compacted(revision) };
  }

  /**
   * etcd tells nobody, but refuses to read at a revision before it; so it is found by halving. Of revision 1 it cannot
   * be found out, and nothing is lost with it: it is 1 when the store is new.
   */
  async #compacted(current: Revision): Promise<Revision> {
    let [readable, refused] = [current, 0];
    while (readable - refused > 1) {
      const middle = Math.floor((readable + refused) / 2);
      if (await this.#isReadable(middle)) readable = middle;
      else refused = middle;
    }
    return refused === 0 ? 0 : readable;
  }

  async #isReadable(revision: Revision): Promise<boolean> {
    try {
      await this.#ask('kv/range', { ...rangeToWire({ key: '\0' }), revision: String(revision) });
      return true;
    } catch (error) {
      if (Failure.is(error, 'compacted')) return false;
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const watch of this.#watches) watch.end();
    this.#agent.destroy();
  }

  #check(signal?: AbortSignal): void {
    if (this.#closed) throw new Failure('closed', 'this store was closed');
    signal?.throwIfAborted();
  }

  #send(path: string, body: object, signal?: AbortSignal): ClientRequest {
    const isStream = path === 'watch';
    const sent = request({
      ...{ host: '127.0.0.1', port: this.#port, path: `/v3/${path}`, method: 'POST' },
      ...(isStream ? { agent: false } : { agent: this.#agent }),
      ...(signal === undefined ? {} : { signal }),
    });
    sent.end(JSON.stringify(body));
    return sent;
  }

  async #ask(path: string, body: object, signal?: AbortSignal): Promise<unknown> {
    const sent = this.#send(path, body, signal);
    try {
      const answer = await new Promise<{ status: number; body: string }>((resolve, reject) => {
        sent.once('error', reject);
        sent.once('response', (response) => {
          wholeText(response).then((whole) => resolve({ status: response.statusCode ?? 0, body: whole }), reject);
        });
      });
      if (answer.status === 200) return JSON.parse(answer.body) as unknown;
      throw failureOf(answer.body);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof Failure) throw error;
      throw new Failure('outcome-unknown', `etcd did not answer: ${String(error)}`, { cause: error });
    }
  }
}

function leaseFrom({ ID, TTL }: WireLease): Lease {
  return { id: ID, ttlMs: 1000 * Number(TTL) };
}

function checkPuts({ success, failure }: Transaction): void {
  for (const each of [...success, ...failure]) {
    if (each.do === 'put') checkWellFormed(each.key);
    if (each.do === 'transaction') checkPuts(each);
  }
}

function failureOf(body: string): Failure {
  const { message = body } = JSON.parse(body) as { readonly message?: string };
  if (/requested lease not found|key not found/.test(message)) return new Failure('not-found', message);
  if (/has been compacted/.test(message)) return new Failure('compacted', message);
  if (/future revision|duplicate key|too many operations|key is not provided|invalid/.test(message))
    return new Failure('invalid', message);
  return new Failure('unavailable', message);
}
