/**
 * The leases that this process makes apart from its session, for holds that outlive the session and for limits; and the roles that
 * one process of a store has at a time: each is an anchor on the lease of its session.
 */
import { Failure } from '../../failure.ts';
import type { ProcessIdentity } from '../../host/index.ts';
import { type Lease, pairIn } from '../../store/index.ts';
import { anchorKey, encode, decode } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { persistently, send } from '../write/write-once.ts';
import type { Session } from './session.ts';
import { readEach } from '../stored.ts';

/** Most holds end soon; of those that last, the id is looked up. */
const MOST_GIVEN = 10_000;

export class OwnLeases {
  readonly #host: Runtime;
  /** The store's ids of leases whose holds are still being made, by name. */
  readonly #ids = new Map<string, string>();
  /** The same for leases that have become the holds of others: a release here then need not look up the id. */
  readonly #givenIds = new Map<string, string>();

  constructor(host: Runtime) {
    this.#host = host;
  }

  /**
   * Makes a lease with an anchor, apart from the session's: for holds that outlive the session, and for limits. `tie`: the
   * process with which it ends. The anchor names it too, so that a process that moves the hold to another lease ties the new lease to it.
   */
  async make(
    session: Session,
    ttlMs: number,
    tie?: ProcessIdentity,
  ): Promise<{ name: string; leaseId: string; ttlMs: number }> {
    const { store, stopped, anchors, options } = this.#host;
    const name = this.#host.nextId(session);
    const key = anchorKey(name);
    const value = encode(tie === undefined ? options.about : { ...(options.about as object), endsWith: tie });
    const granted: Lease[] = [];
    const made = await persistently(this.#host, this.#host.giveUpAt(), async () => {
      const fresh = await store.grantLease(ttlMs, stopped);
      granted.push(fresh);
      if (tie !== undefined) await store.endLeaseWith?.(fresh.id, [tie], stopped);
      // An earlier attempt without an answer may have landed, or land later: only one of them makes the anchor.
      const result = await send(this.#host, {
        compare: [{ key, target: 'version', is: '=', than: 0 }],
        success: [{ do: 'put', key, value, lease: fresh.id }],
        failure: [{ do: 'read', key }],
      }).catch((error: unknown) => {
        // The lease ended before the answer that granted it arrived: another attempt would come too late as well.
        if (Failure.is(error, 'not-found')) return error;
        throw error;
      });
      if (result instanceof Failure) return result;
      const found = pairIn(result.results, key);
      const lease = result.succeeded ? fresh : granted.find(({ id }) => id === found?.lease);
      if (lease === undefined)
        throw new Failure('inconsistent', `${key} is on a lease that this process did not ask for`);
      return { lease, revision: result.revision };
    });
    if (made instanceof Failure) throw made;
    const { lease, revision } = made;
    for (const { id } of granted) if (id !== lease.id) void store.revokeLease(id).catch(() => undefined);
    this.#host.saw(revision);
    anchors.add(name, revision);
    this.#ids.set(name, lease.id);
    return { name, leaseId: lease.id, ttlMs: lease.ttlMs };
  }

  idOf(name: string): string | undefined {
    return this.#ids.get(name);
  }

  forget(name: string): void {
    const id = this.#ids.get(name);
    if (id === undefined) return;
    this.#ids.delete(name);
    this.#givenIds.set(name, id);
    if (this.#givenIds.size > MOST_GIVEN) this.#givenIds.delete(this.#givenIds.keys().next().value as string);
  }

  /** The store's id of a lease that this process made and forgot, if it still knows it; asked once, to end the lease. */
  takeGivenId(name: string): string | undefined {
    const id = this.#givenIds.get(name);
    this.#givenIds.delete(name);
    return id;
  }
}

/** Takes the role if no process has it. Answers whether this process has it now. */
export async function takeRole(runtime: Runtime, role: string): Promise<boolean> {
  const { session, store, stopped } = runtime;
  if (session === undefined) return false;
  const key = anchorKey(role);
  const { results } = await store.transaction(
    {
      compare: [
        { key, target: 'version', is: '=', than: 0 },
        { key: anchorKey(session.id), target: 'version', is: '>', than: 0 },
      ],
      success: [{ do: 'put', key, value: encode(session.id), lease: session.leaseId }],
      failure: [{ do: 'read', key }],
    },
    stopped,
  );
  const [read] = results;
  // A key that cannot be read names nobody, and must not keep every process from the role.
  const [holder = session.id] = read?.do === 'read' ? readEach(read.pairs, (pair) => decode<unknown>(pair)) : [];
  return holder === session.id;
}
