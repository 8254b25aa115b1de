/** Plain keys over HTTP, for administrators. */
import type { BusCompare, BusOperation, BusPair, BusTransactionResult } from '../runtime/bus/bus.ts';
import { type Requests, segment } from './requests.ts';

/** The plain keys of a store, at a server. */
export class RemoteBus {
  readonly #requests: Requests;

  /** @internal */
  constructor(requests: Requests) {
    this.#requests = requests;
  }

  /** Sets a key, whatever its value was. */
  async put(key: string, value: string): Promise<{ readonly revision: number }> {
    const ask = { method: 'PUT', path: keyPath(key), body: { value }, isKeyed: true } as const;
    const { revision } = await this.#requests.ask<{ revision: number }>(ask);
    return { revision };
  }

  /** The value of a key; null if there is none. */
  async get(key: string): Promise<string | null> {
    return (await this.#requests.found<BusPair>(keyPath(key)))?.value ?? null;
  }

  /** Deletes a key; answers how many it deleted: 0 or 1. */
  async delete(key: string): Promise<{ readonly deleted: number }> {
    const ask = { method: 'DELETE', path: keyPath(key), isKeyed: true } as const;
    const { deleted } = await this.#requests.ask<{ deleted: number }>(ask);
    return { deleted };
  }

  /** Applies `success` if every comparison holds, else `failure`; all or nothing. */
  transaction(
    compare: readonly BusCompare[],
    success: readonly BusOperation[],
    failure: readonly BusOperation[] = [],
  ): Promise<BusTransactionResult> {
    const body = { compare, success, failure };
    return this.#requests.ask({ method: 'POST', path: '/v1/bus', body, isKeyed: true });
  }
}

function keyPath(key: string): string {
  return `/v1/bus/${segment(key)}`;
}
