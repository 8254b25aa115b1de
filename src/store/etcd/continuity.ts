/**
 * Notices that the servers no longer have the etcd that this process began with: it was restored from a backup, or
 * another one is in its place. Otherwise, watches would wait in silence for revisions that are still to come, and two
 * processes could hold the same lock: one in the old etcd, one in the new.
 *
 *     another cluster id               the store is over
 *     a revision that goes back        in an answer that cannot lag: the store is over
 *                                      in one that can: asked again, with a read that cannot
 *     a new link                       asked, with the same read: the etcd may have gone back while nobody was connected
 *
 * The id alone is no proof: `etcdctl snapshot restore` computes it from the members' addresses and the cluster's token.
 */
import type { Revision } from '../contract.ts';
import { headerOf } from './wire/header.ts';

export interface ContinuityListener {
  /** Reads something that only a server with the newest revision may answer. Rejects if there was no answer. */
  readNewest(): Promise<unknown>;
  /** Says that the store is over; `why` continues a sentence. */
  replaced(why: string): void;
}

/** A server, as messages name it. */
interface Server {
  readonly where: string;
}

export class Continuity {
  listener: ContinuityListener | undefined;
  /** The newest revision that this process has seen. */
  newest: Revision = 0;
  #cluster = 0;
  /** Whether a read over the current link has shown that the etcd is the same. */
  #isSure = true;
  #isReading = false;

  /**
   * Whether an answer is from the same etcd. `atLeast` is the newest revision that was known when the request was sent:
   * an etcd that answers with less has gone back. It is 0 if the server that answers may lag behind the others.
   */
  admits(message: Uint8Array, atLeast: Revision, server: Server): boolean {
    const { cluster, revision } = headerOf(message);
    if (cluster !== this.#cluster && cluster !== 0) {
      if (this.#cluster !== 0) return this.#over(`${server.where} belongs to another cluster now`);
      this.#cluster = cluster;
    }
    if (revision > this.newest && Number.isSafeInteger(revision)) this.newest = revision;
    else if (revision < atLeast && revision > 0)
      return this.#over(`${server.where} is at revision ${revision}, and revision ${atLeast} was there before`);
    return true;
  }

  /** Checks the answer to a renewal, whose server may lag. */
  admitsRenewal(message: Uint8Array, expected: Revision, server: Server): boolean {
    if (!this.admits(message, 0, server)) return false;
    if (!this.#isSure || headerOf(message).revision < expected) this.#ask();
    return true;
  }

  /** To be called when a link was made, to any server. */
  linked(): void {
    if (this.newest === 0) return;
    this.#isSure = false;
    this.#ask();
  }

  #ask(): void {
    if (this.#isReading || this.listener === undefined) return;
    this.#isReading = true;
    this.listener.readNewest().then(
      () => {
        this.#isReading = false;
        this.#isSure = true;
      },
      // The next renewal asks again.
      () => (this.#isReading = false),
    );
  }

  #over(why: string): false {
    this.listener?.replaced(why);
    return false;
  }
}
