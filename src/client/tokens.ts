/** Tokens over HTTP, for administrators. */
import { tokenFrom, type TokenJson } from '../json/token.ts';
import type { TokenTerms, TokenView } from '../runtime/access/tokens.ts';
import { type Requests, segment } from './requests.ts';

/** The tokens of a store, at a server. */
export class RemoteTokens {
  readonly #requests: Requests;

  /** @internal */
  constructor(requests: Requests) {
    this.#requests = requests;
  }

  /** Makes a token. The secret is in the answer, and nowhere else. */
  async create(terms: TokenTerms): Promise<{ readonly secret: string; readonly token: TokenView }> {
    // A repeat would make another token.
    const ask = { method: 'POST', path: '/v1/tokens', body: terms, retryMs: 0 } as const;
    const { secret, token } = await this.#requests.ask<{ secret: string; token: TokenJson }>(ask);
    return { secret, token: tokenFrom(token) };
  }

  /** All tokens, without their secrets, the oldest first. */
  async list(): Promise<readonly TokenView[]> {
    return (await this.#requests.get<{ tokens: readonly TokenJson[] }>('/v1/tokens')).tokens.map(tokenFrom);
  }

  /** Ends a token. False if there is none with this id. */
  async revoke(id: string): Promise<boolean> {
    if (!/^[0-9a-f]{16}$/.test(id)) return false;
    const ask = { method: 'DELETE', path: `/v1/tokens/${segment(id)}`, isKeyed: true } as const;
    return this.#requests.did(ask, 'no-such-thing');
  }
}
