/** The memberships of this process: they end with the session that they rest on. */
import { Failure } from '../../failure.ts';
import type { RuntimeObserver } from '../runtime.ts';
import type { Session } from '../session/session.ts';

export class OwnMemberships implements RuntimeObserver {
  readonly #all = new Set<OwnMembership>();

  /** `release`: lets the process end, as far as this membership kept it alive. */
  add(id: string, incarnation: number, session: Session, release: () => void): OwnMembership {
    const own = new OwnMembership(id, incarnation, session, () => {
      this.#all.delete(own);
      release();
    });
    this.#all.add(own);
    return own;
  }

  get count(): number {
    return this.#all.size;
  }

  /** `isSame`: compares incarnations. */
  has(id: string, isSame: (incarnation: number) => boolean): boolean {
    return [...this.#all].some((own) => own.id === id && own.isValid && isSame(own.incarnation));
  }

  sessionEnded(session: Session): void {
    for (const own of [...this.#all]) if (own.session === session) own.sessionEnded();
  }
}

export class OwnMembership {
  readonly id: string;
  readonly incarnation: number;
  readonly session: Session;
  readonly #ended: () => void;
  readonly #lost = new AbortController();
  #hasEnded = false;

  /** `ended`: called once, however it ends. */
  constructor(id: string, incarnation: number, session: Session, ended: () => void) {
    this.id = id;
    this.incarnation = incarnation;
    this.session = session;
    this.#ended = ended;
  }

  get isValid(): boolean {
    return !this.#hasEnded && this.session.isValid();
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#ended();
  }

  /** Closing a signalbox is a way to leave, and no loss. */
  sessionEnded(): void {
    if (this.#hasEnded) return;
    this.end();
    if (this.session.ended === 'closed') return;
    this.#lost.abort(new Failure('hold-lost', `member/${this.id}: this process did not renew its session in time`));
  }
}
