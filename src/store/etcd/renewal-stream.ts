/**
 * Carries all renewals of this process over one stream. etcd answers them in the order they were sent and names the
 * lease; answers are matched by lease, oldest request first. An answer never counts for two requests: each counts its
 * time from its own sending.
 */
import { INTERNAL } from '../../grpc/status.ts';
import { CallFailure, type OutgoingStream } from '../../grpc/transport.ts';
import type { Lease, LeaseId, Revision } from '../contract.ts';
import type { Continuity } from './continuity.ts';
import type { Link } from './link.ts';
import { grantedLease, leaseMessage } from './wire/lease.ts';

interface Renewal {
  readonly done: (lease: Lease) => void;
  readonly failed: (failure: CallFailure) => void;
  isGivenUp: boolean;
}

export class RenewalStream {
  readonly #continuity: Continuity;
  readonly #stream: OutgoingStream;
  readonly #renewals = new Map<LeaseId, Renewal[]>();
  /** The newest revision that was known when the last renewal was sent. */
  #expected: Revision = 0;
  isOver = false;

  constructor(link: Link) {
    this.#continuity = link.continuity;
    this.#stream = link.connection.stream(
      { path: '/etcdserverpb.Lease/LeaseKeepAlive', headers: link.headers },
      {
        message: (message) => {
          link.heard();
          if (link.continuity.admitsRenewal(message, this.#expected, link)) this.#read(message);
        },
        ended: (failure) => this.#over(failure),
      },
    );
  }

  renew(id: LeaseId, done: (lease: Lease) => void, failed: (failure: CallFailure) => void): () => void {
    const renewal: Renewal = { done, failed, isGivenUp: false };
    const others = this.#renewals.get(id);
    if (others === undefined) this.#renewals.set(id, [renewal]);
    else others.push(renewal);
    this.#expected = this.#continuity.newest;
    this.#stream.send(leaseMessage(id));
    // The renewal keeps its place, because its answer is still to come.
    return () => (renewal.isGivenUp = true);
  }

  end(why: CallFailure): void {
    if (this.isOver) return;
    this.#stream.cancel();
    this.#over(why);
  }

  #read(message: Uint8Array): void {
    let lease: Lease;
    try {
      lease = grantedLease(message);
    } catch (cause) {
      return this.end(new CallFailure(INTERNAL, "the server's message about a lease cannot be read", false, { cause }));
    }
    this.#hear(lease);
  }

  #hear(lease: Lease): void {
    const waiting = this.#renewals.get(lease.id);
    const renewal = waiting?.shift();
    if (waiting?.length === 0) this.#renewals.delete(lease.id);
    if (renewal?.isGivenUp === false) renewal.done(lease);
  }

  #over(failure: CallFailure): void {
    if (this.isOver) return;
    this.isOver = true;
    for (const renewal of [...this.#renewals.values()].flat()) {
      if (!renewal.isGivenUp) renewal.failed(failure);
    }
    this.#renewals.clear();
  }
}
