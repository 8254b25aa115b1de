/** The memberships of this process: they end with the session that they rest on. */
import { Failure } from '../../failure.ts';
import type { RuntimeObserver } from '../observer.ts';
import type { Session } from '../session/session.ts';

export class OwnMemberships implements RuntimeObserver {
  readonly #all = new Set<OwnMembership>();

  add(own: OwnMembership): void {
    this.#all.add(own);
  }

  /** `isSame`: compares incarnations. */
  has(id: string, isSame: (incarnation: number) => boolean): boolean {
    return [...this.#all].some((own) => own.id === id && own.isValid && isSame(own.incarnation));
  }

  sessionEnded(session: Session): void {
    for (const own of this.#all) {
      if (own.hasEnded || own.session === session) this.#all.delete(own);
      if (own.session === session) own.sessionEnded();
    }
  }
}

export class OwnMembership {
  readonly id: string;
  readonly incarnation: number;
  readonly session: Session;
  readonly #release: () => void;
  readonly #lost = new AbortController();
  #hasEnded = false;

  /** `release`: lets the process end, as far as this membership kept it alive. */
  constructor(id: string, incarnation: number, session: Session, release: () => void) {
    this.id = id;
    this.incarnation = incarnation;
    this.session = session;
    this.#release = release;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get isValid(): boolean {
    return !this.#hasEnded && this.session.isValid();
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  end(): void {
    this.#hasEnded = true;
    this.#release();
  }

  /** A signalbox that is closed leaves, and so loses nothing. */
  sessionEnded(): void {
    if (this.#hasEnded) return;
    this.end();
    if (this.session.ended === 'closed') return;
    this.#lost.abort(new Failure('hold-lost', `member/${this.id}: this process did not renew its session in time`));
  }
}
