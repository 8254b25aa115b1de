/** Reads locks from their refs, which decide, and changes nothing. */
import {
  type Held,
  isPast,
  isStale,
  issueOfRef,
  later,
  type LiveLock,
  LOCKS,
  lockRef,
  type LockRecord,
  marginMs,
  recordIn,
  type Refusal,
} from '../core/github/index.ts';
import { Failure } from '../failure.ts';
import type { GitHubClient, Tip } from './client.ts';
import type { Driver } from './drive.ts';
import { type LockReason, reasonOf } from './reason.ts';
import type { LockedIssue, LockStatus } from './terms.ts';

/** `held` is what a release needs; it is absent if the lock is free or its time is over. */
export type FoundLock =
  | { readonly record?: LockRecord; readonly held?: Held; readonly isStale: boolean }
  | { readonly reason: LockReason };

export class LockReader {
  readonly #driver: Driver;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  async find(issue: number): Promise<FoundLock> {
    const sent = this.#driver.instant();
    const ref = await this.#driver.client.getRef(lockRef(issue));
    if (ref.kind === 'missing') return { isStale: false };
    if (ref.kind !== 'ok') return { reason: this.#reason(troubleOf(ref)) };
    const commit = await this.#driver.commit(ref.value.sha);
    if (commit.kind !== 'ok') return { reason: this.#reason(troubleOf(commit)) };
    const record = recordIn(commit.value.message, issue);
    if (record === undefined) return { reason: { kind: 'foreign-ref', issue, sha: ref.value.sha } };
    const ageMs = (ref.date?.ms ?? Number.POSITIVE_INFINITY) - commit.value.dateMs;
    // GitHub's dates have whole seconds.
    const deadline = later(sent, record.timeout_ms - marginMs(record.timeout_ms) - ageMs - 1_000);
    const held = {
      issue,
      tip: ref.value.sha,
      record,
      before: commit.value.parents,
      deadline,
      since: later(sent, -ageMs),
      commentAt: sent,
    };
    const isOld = isStale(record, commit.value.dateMs, ref.date?.ms ?? 0);
    return { record, isStale: isOld, ...(record.state === 'held' && !isPast(deadline, sent) && { held }) };
  }

  /** Lists every lock of the repository with two requests, which are free of charge while nothing changes. */
  async list(): Promise<readonly LockedIssue[]> {
    const { client } = this.#driver;
    const [tips, assigned] = await Promise.all([client.listTips(LOCKS), client.listAssigned()]);
    const titles = new Map(assigned.kind === 'ok' ? assigned.value.map(({ issue, title }) => [issue, title]) : []);
    const all = tips.kind === 'missing' ? await this.#tipsOneByOne() : tips;
    if (all.kind !== 'ok') throw new Failure(all.kind === 'denied' ? 'forbidden' : 'unavailable', all.message);
    return recordsIn(all.value)
      .filter(({ record }) => record.state === 'held')
      .map(({ issue, record, dateMs }) => {
        const isOld = isStale(record, dateMs, all.date?.ms ?? 0);
        return { issue, title: titles.get(issue) ?? null, ...statusOf(record, isOld) };
      })
      .sort((one, other) => one.issue - other.issue);
  }

  async #tipsOneByOne(): ReturnType<GitHubClient['listTips']> {
    const refs = await this.#driver.client.listRefs(LOCKS);
    if (refs.kind !== 'ok') return refs;
    const commits = await Promise.all(refs.value.map(({ sha }) => this.#driver.commit(sha)));
    const value = refs.value.flatMap((ref, place) => {
      const commit = commits[place];
      return commit?.kind === 'ok' ? [{ ...ref, message: commit.value.message, dateMs: commit.value.dateMs }] : [];
    });
    return { ...refs, value };
  }

  #reason(refusal: Refusal): LockReason {
    return reasonOf(refusal, this.#driver.clock.now());
  }
}

/** The locks among the refs; foreign refs are left out. */
export function recordsIn(tips: readonly Tip[]): readonly (LiveLock & { readonly dateMs: number })[] {
  return tips.flatMap(({ ref, sha, message, dateMs }) => {
    const issue = issueOfRef(ref);
    const record = issue === undefined ? undefined : recordIn(message, issue);
    return issue === undefined || record === undefined ? [] : [{ issue, tip: sha, record, dateMs }];
  });
}

export function statusOf(record: LockRecord | undefined, isOld: boolean): LockStatus {
  const isLocked = record?.state === 'held';
  return {
    isLocked,
    assignee: isLocked ? record.login : null,
    metadata: isLocked ? { lock: record.lock } : null,
    token: record?.epoch ?? 0,
    isStale: isLocked && isOld,
  };
}

function troubleOf(reply: { readonly kind: string; readonly message: string; readonly waitMs?: number }): Refusal {
  if (reply.kind === 'limited') return { kind: 'rate-limited', waitMs: reply.waitMs ?? 0, message: reply.message };
  if (reply.kind === 'denied') return { kind: 'unauthorised', message: reply.message };
  return { kind: 'unreachable', message: reply.message };
}
