/** Reads the anchors of a survey: the leases that exist, and the processes they belong to. */
import { type Json, isRecord } from '../../../core/index.ts';
import { identityFrom, type ProcessIdentity } from '../../../host/index.ts';
import type { KeyValue, LeaseId } from '../../../store/index.ts';
import { ANCHORS, decode, MAINTAINER, processOf, tieIn } from '../../layout.ts';
import { type Malformed, readEach } from '../../stored.ts';

/** A process that is present in the store. */
export interface SurveyedSession {
  /** The id of the session. */
  readonly id: string;
  /** The machine it runs on, if it says so. */
  readonly host: string | undefined;
  /** The process, if it said so. */
  readonly pid: number | undefined;
  /** The user that it acts as, if it says so. */
  readonly user: string | undefined;
  /** The directory that it was started in, if it says so. */
  readonly directory: string | undefined;
  /** What it says about itself. */
  readonly about: Json;
}

export class Anchored {
  readonly #anchors: ReadonlyMap<string, KeyValue>;
  /** The content of each anchor. That of a malformed anchor is missing, but its lease still counts. */
  readonly #told: ReadonlyMap<string, Json>;

  constructor(pairs: readonly KeyValue[], malformed: (found: Malformed) => void) {
    this.#anchors = new Map(pairs.map((pair) => [leaseOf(pair), pair]));
    this.#told = new Map(readEach(pairs, (pair) => [leaseOf(pair), decode<Json>(pair)] as const, malformed));
  }

  isThere(lease: string): boolean {
    return this.#anchors.has(lease);
  }

  leaseId(lease: string): LeaseId | undefined {
    return this.#anchors.get(lease)?.lease ?? undefined;
  }

  /** The process of a session, or the one that made a detached lease. */
  session(lease: string): SurveyedSession | undefined {
    const about = this.#told.get(lease);
    return about === undefined ? undefined : sessionOf(lease, about);
  }

  /** The identity of the process, if it wrote one. */
  process(lease: string): ProcessIdentity | undefined {
    return identityFrom(this.#told.get(lease));
  }

  /** The process with which a detached hold ends. */
  tie(lease: string): ProcessIdentity | undefined {
    const about = this.#told.get(lease);
    return about === undefined ? undefined : tieIn(about);
  }

  sessions(): readonly SurveyedSession[] {
    return [...this.#anchors.keys()].flatMap((lease) => {
      const session = lease === MAINTAINER || processOf(lease) !== lease ? undefined : this.session(lease);
      return session === undefined ? [] : [session];
    });
  }

  maintainer(): string | undefined {
    const told = this.#told.get(MAINTAINER);
    return typeof told === 'string' ? told : undefined;
  }
}

/** `lease`: of the session, or of the hold that the process took. */
export function sessionOf(lease: string, about: Json): SurveyedSession {
  const { host, pid, user, directory } = isRecord(about) ? about : {};
  return {
    id: lease,
    host: textOf(host),
    user: textOf(user),
    directory: textOf(directory),
    pid: typeof pid === 'number' ? pid : undefined,
    about,
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function leaseOf({ key }: KeyValue): string {
  return key.slice(ANCHORS.length);
}
