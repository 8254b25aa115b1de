/**
 * Tokens by which programs reach a server. The store keeps the SHA-256 of each secret, which has 256 random bits: a secret can
 * be checked against it, but not recovered from it. The secret itself is shown once.
 *
 *     sbx_<id>_<secret>        <id> names the key `k/token/<id>`
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { isExpired, LONGEST_NAME, type Role, ROLES, type TokenEntry, tokenProblem } from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import { type Change, type Changes, type KeyValue, prefixed, readRange, type Revision } from '../../store/index.ts';
import { encode, checked, type Fields } from '../layout.ts';
import type { Doer } from '../options.ts';
import type { Runtime } from '../runtime.ts';
import { follow } from '../../store/follow.ts';
import { readEach } from '../stored.ts';
import type { Deed } from '../write/witnessed-commit.ts';
import { sendWitnessed } from '../write/write-once.ts';

/** The terms of a new token. */
export interface TokenTerms {
  /** What people call it. */
  readonly name: string;
  /** What it allows. */
  readonly role: Role;
  /** Of a worker: the holders that it may act for, such as `agent:*`; any, if not given. */
  readonly holders?: readonly string[];
  /** It is refused after this time; never, if not given. */
  readonly ttlMs?: number;
}

/** A token, without anything by which it could be used. */
export type TokenView = Omit<TokenEntry, 'hash'>;

const TOKENS = 'k/token/';
const FORM = /^sbx_([0-9a-f]{16})_([A-Za-z0-9_-]{43})$/;

/** Tokens by which programs reach a server. */
export class AccessTokens {
  readonly #runtime: Runtime;
  #known: Promise<Map<string, TokenEntry>> | undefined;

  /** @internal */
  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Makes a token. `secret` is what its user sends; nobody can read it again. */
  async create(terms: TokenTerms, { by }: Doer = {}): Promise<{ readonly secret: string; readonly token: TokenView }> {
    const problem = tokenProblem(terms);
    if (problem !== undefined) throw new Failure('invalid', problem);
    const { name, role, holders, ttlMs } = terms;
    const id = randomBytes(8).toString('hex');
    const secret = `sbx_${id}_${randomBytes(32).toString('base64url')}`;
    const now = this.#runtime.clock.now();
    const token = {
      ...{ id, name, role, createdAt: now },
      ...(holders !== undefined && { holders: [...holders] }),
      ...(ttlMs !== undefined && { expiresAt: now + ttlMs }),
    };
    const put = { do: 'put', key: TOKENS + id, value: encode({ ...token, hash: hashOf(secret) }) } as const;
    const { createdAt: _at, id: _id, ...detail } = token;
    const deed = this.#deed(id, by, 'create', 'created', detail);
    await sendWitnessed(this.#runtime, { compare: [], success: [put], failure: [] }, [deed]);
    return { secret, token };
  }

  /** All tokens, expired ones too, in the order in which they were made. */
  async list(): Promise<readonly TokenView[]> {
    const entries = [...(await this.#read()).entries.values()];
    return entries.map(({ hash: _, ...view }) => view).sort((a, b) => a.createdAt - b.createdAt);
  }

  /** Ends a token at once, for every server on this store. Answers whether there was one. */
  async revoke(id: string, { by }: Doer = {}): Promise<boolean> {
    if (!/^[0-9a-f]{16}$/.test(id)) return false;
    const key = TOKENS + id;
    const { succeeded } = await sendWitnessed(
      this.#runtime,
      {
        compare: [{ key, target: 'version', is: '>', than: 0 }],
        success: [{ do: 'delete', key }],
        failure: [],
      },
      [this.#deed(id, by, 'revoke', 'revoked')],
    );
    return succeeded;
  }

  #deed(id: string, by: string | undefined, command: string, outcome: string, detail: Deed['detail'] = {}): Deed {
    return { resource: `token/${id}`, actor: by ?? this.#runtime.sender.id, command, outcome, detail };
  }

  /**
   * The token with this secret, if it is valid now. The first call begins to follow the tokens; later calls read nothing from
   * the store.
   */
  async find(secret: string): Promise<TokenView | undefined> {
    const [, id = ''] = FORM.exec(secret) ?? [];
    if (id === '') return undefined;
    const entry = (await this.#followed()).get(id);
    if (entry === undefined || !isSame(entry.hash, hashOf(secret))) return undefined;
    const { hash: _, ...view } = entry;
    return isExpired(view, this.#runtime.clock.now()) ? undefined : view;
  }

  #followed(): Promise<Map<string, TokenEntry>> {
    this.#known ??= this.#follow().catch((error: unknown) => {
      this.#known = undefined;
      throw error;
    });
    return this.#known;
  }

  async #follow(): Promise<Map<string, TokenEntry>> {
    const { store, clock, stopped } = this.#runtime;
    const { entries: known, revision: since } = await this.#read();
    const resync = async (): Promise<Revision> => {
      const { entries, revision } = await this.#read();
      known.clear();
      for (const [id, entry] of entries) known.set(id, entry);
      return revision;
    };
    const changes = ({ changes: some }: Changes): void => {
      for (const change of some) changed(known, change);
    };
    await follow(store, clock, prefixed(TOKENS), { changes, resync }, stopped, undefined, since);
    return known;
  }

  async #read(): Promise<{ readonly entries: Map<string, TokenEntry>; readonly revision: Revision }> {
    const { store, stopped } = this.#runtime;
    this.#runtime.refuseIfClosed();
    // Asks for the revision first: what changes before the read, the watch delivers once more, which does no harm.
    const { revision } = await store.health(stopped);
    const { pairs } = await readRange(store, prefixed(TOKENS), stopped);
    return { entries: new Map(readEach(pairs, entryIn).map((entry) => [entry.id, entry])), revision };
  }
}

function changed(known: Map<string, TokenEntry>, change: Change): void {
  const key = change.kind === 'put' ? change.pair.key : change.key;
  // A key that cannot be read is no token, whatever it was before.
  known.delete(key.slice(TOKENS.length));
  if (change.kind === 'put') for (const entry of readEach([change.pair], entryIn)) known.set(entry.id, entry);
}

function entryIn(pair: KeyValue): TokenEntry {
  const entry = checked<TokenEntry>(pair, entryProblem);
  if (TOKENS + entry.id !== pair.key) throw new Failure('corrupt', `${pair.key} has the id ${shown(entry.id)}`);
  return entry;
}

function entryProblem({ id, name, role, holders, hash, createdAt, expiresAt }: Fields): string | undefined {
  if (typeof id !== 'string') return `its id is ${shown(id)}`;
  if (typeof hash !== 'string' || !/^[0-9a-f]{64}$/.test(hash)) return 'its hash is not one';
  if (!ROLES.some((one) => one === role)) return `its role is ${shown(role)}`;
  if (typeof createdAt !== 'number') return `its time is ${shown(createdAt)}`;
  if (expiresAt !== undefined && typeof expiresAt !== 'number') return `its end is ${shown(expiresAt)}`;
  // An earlier version accepted longer names.
  return tokenProblem({ name, role, holders }, LONGEST_NAME);
}

export function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/** Takes as long for a wrong hash as for a right one. */
export function isSame(hash: string, other: string): boolean {
  const [one, two] = [Buffer.from(hash), Buffer.from(other)];
  return one.length === two.length && timingSafeEqual(one, two);
}
