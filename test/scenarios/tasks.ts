/**
 * A world with one task in it, decided by the bare core. What can be said:
 *
 *     ci publishes                       … needing gpu      … after build      … with 2 retries      … pausing
 *     py puts data that is no JSON
 *     w1 claims                          … having gpu
 *     w1 completes                       … #1: with this token instead of its own
 *     w1 releases                        … #1
 *     w1 fails, because "it is red"      … , for good
 *     admin takes it away, because "it hangs"
 *     admin retries                      … requeues         … forgets
 *     w1's lease ends                    the pause ends
 *     py claims without a lease
 *     maintenance
 *     build is complete                  (or running, or failed)
 */
import {
  BACKOFF_OWNER,
  blockerTold,
  type ClaimRequest,
  decideClaim,
  decideEnd,
  decideForget,
  decideRepair,
  decideRequeue,
  type Ending,
  type Event,
  isOrphaned,
  isOwned,
  statusOf,
  type Task,
  type TaskStatus,
  type TaskWrite,
  termsOf,
  unpublished,
} from 'signalbox/core';
import { type Setting, type Telling, Tokens, type World } from './story.ts';

export const aTask: Setting = { onMachine: () => new TaskWorld() };

class TaskWorld implements World {
  readonly #tokens = new Tokens();
  readonly #others = new Map<string, TaskStatus>();
  #task: Task = unpublished('a');
  #revision = 0;

  hear(line: string): Telling {
    this.#revision += 1;
    for (const [pattern, act] of this.#grammar) {
      const found = new RegExp(`^${pattern}$`).exec(line);
      if (found !== null) return { ...act(found.slice(1).map((part) => part ?? '')), state: this.#state() };
    }
    throw new Error(`no story goes like this: ${line}`);
  }

  readonly #grammar: readonly [string, (parts: readonly string[]) => Omit<Telling, 'state'>][] = [
    [
      '\\w+ publishes(?: needing (\\w+))?(?: after (\\w+))?(?: with (\\d+) retries)?( pausing)?',
      (parts) => this.#publish(parts),
    ],
    ['\\w+ puts data that is no JSON', () => this.#data(undefined, 'its data is not JSON')],
    ['(\\w+) claims without a lease', ([who = '']) => this.#own(who)],
    ['(\\w+) claims(?: having (\\w+))?', ([who = '', has]) => this.#claim(who, has === '' ? [] : [has as string])],
    ['(\\w+) (completes|releases)(?: #(\\d+))?', ([who = '', how, token]) => this.#end(who, how as string, token)],
    [
      '(\\w+) fails, because "(.*?)"(, for good)?',
      ([who = '', reason = '', good]) => this.#ended(who, '', { how: 'fail', reason, retry: good === '' }),
    ],
    [
      '(\\w+) takes it away, because "(.*)"',
      ([by = '', reason = '']) => this.#ended(undefined, '', { how: 'force', by, reason }),
    ],
    ["\\w+'s lease ends", () => this.#leaseEnds()],
    ['the pause ends', () => this.#leaseEnds()],
    ['(\\w+) (retries|requeues)', ([by = '', what]) => this.#requeue(by, what === 'retries' ? 'failed' : 'any')],
    ['\\w+ forgets', () => this.#forget()],
    ['maintenance', () => this.#repair()],
    ['(\\w+) is (complete|running|failed)', ([id = '', status]) => this.#other(id, status as TaskStatus)],
  ];

  #publish([needs, after, retries, pausing]: readonly string[]): Omit<Telling, 'state'> {
    if (this.#task.data !== undefined) return { outcome: 'exists' };
    return this.#data({
      ...(needs !== '' && { capabilities: [needs] }),
      ...(after !== '' && { dependsOn: [after] }),
      retries: Number(retries),
      ...(pausing !== '' && { backoffMs: 1000 }),
    });
  }

  #data(json: object | undefined, problem?: string): Omit<Telling, 'state'> {
    const { terms } = termsOf(json);
    const data = { json: json as never, terms, problem, published: this.#revision, mod: this.#revision };
    this.#task = { ...this.#task, data };
    return { outcome: 'published' };
  }

  #own(holder: string): Omit<Telling, 'state'> {
    const owner = { holder, token: this.#revision, mod: this.#revision, lease: null };
    this.#task = { ...this.#task, owner, status: { word: 'running', mod: this.#revision } };
    return {};
  }

  #claim(holder: string, capabilities: readonly string[]): Omit<Telling, 'state'> {
    const request: ClaimRequest = { id: `${holder}.${this.#revision}`, holder, capabilities, at: 0 };
    const decided = decideClaim(this.#task, request, (id) => this.#others.get(id));
    switch (decided.kind) {
      case 'write':
        return { outcome: `claimed ${this.#tokens.name(this.#revision)}`, events: this.#written(decided, holder) };
      case 'taken':
        return { outcome: `taken by ${decided.owner}${decided.isLeased ? '' : ', on no lease'}` };
      case 'finished':
        return { outcome: `finished: ${decided.status}` };
      case 'blocked':
        return { outcome: `blocked: ${decided.by.map(blockerTold).join('; ')}` };
      case 'unfit':
        return { outcome: `unfit: lacks ${decided.lacking.join(', ')}` };
      case 'missing':
        return { outcome: 'missing' };
      case 'lost-too-often': {
        const events = this.#written(decided.write, this.#task.bookkeeping?.entry.claim?.holder);
        return { ...this.#claim(holder, capabilities), events };
      }
    }
  }

  #requeue(by: string, only: 'failed' | 'any'): Omit<Telling, 'state'> {
    const decided = decideRequeue(this.#task, only, { by, request: 'r', now: 0 });
    if (decided.kind !== 'write') return { outcome: decided.kind };
    return { outcome: 'requeued', events: this.#written(decided) };
  }

  #forget(): Omit<Telling, 'state'> {
    const { kind } = decideForget(this.#task);
    if (kind === 'forget') this.#task = unpublished('a');
    return { outcome: kind === 'forget' ? 'forgotten' : kind };
  }

  #end(who: string, how: string, token: string | undefined): Omit<Telling, 'state'> {
    return this.#ended(who, token ?? '', { how: how === 'completes' ? 'complete' : 'release' });
  }

  #ended(holder: string | undefined, token: string, ending: Ending): Omit<Telling, 'state'> {
    const claim = {
      ...(holder !== undefined && { holder }),
      ...(token !== '' && { token: this.#tokens.named(Number(token)) }),
    };
    const decided = decideEnd(this.#task, claim, ending, { request: 'r', now: 0 });
    if (decided.kind === 'not-owner') return { outcome: 'not-owner' };
    return { outcome: decided.bookkeeping.ended?.how ?? '', events: this.#written(decided) };
  }

  #leaseEnds(): Omit<Telling, 'state'> {
    if (this.#task.owner?.lease !== null) this.#task = { ...this.#task, owner: undefined };
    return {};
  }

  #repair(): Omit<Telling, 'state'> {
    const write = decideRepair(this.#task, 0);
    if (write === undefined) return {};
    return { events: this.#written(write, this.#task.bookkeeping?.entry.claim?.holder) };
  }

  #other(id: string, status: TaskStatus): Omit<Telling, 'state'> {
    this.#others.set(id, status);
    return {};
  }

  /** As the store would have it now. */
  #written({ owner, status, bookkeeping }: TaskWrite, holder = this.#task.owner?.holder ?? ''): readonly string[] {
    const mod = this.#revision;
    const before = this.#task.owner;
    const owners = {
      claim: { holder, token: mod, mod, lease: 'its lease' },
      delete: undefined,
      'keep-unleased': { token: mod, ...before, holder, mod, lease: null },
      'back-off': { token: mod, ...before, holder: BACKOFF_OWNER, mod, lease: 'the pause' },
    };
    this.#task = {
      ...this.#task,
      owner: owners[owner],
      status: { word: status, mod },
      bookkeeping: { entry: bookkeeping, mod },
    };
    return bookkeeping.events.map((event) => this.#told(event));
  }

  #told({ type, holder, reason, by }: Event): string {
    const why = reason === undefined ? '' : `: ${String(reason)}`;
    return `${type} ${holder}${by === undefined ? '' : ` by ${String(by)}`}${why}`.trimEnd();
  }

  #state(): string {
    const task = this.#task;
    if (task.data === undefined) return 'not published';
    const attempts = task.bookkeeping?.entry.attempts ?? 0;
    const tried = attempts === 0 ? '' : `, tried ${attempts === 1 ? 'once' : `${attempts} times`}`;
    const owner = isOwned(task) ? ` by ${task.owner?.holder} ${this.#tokens.name(task.owner?.token as number)}` : '';
    return `${statusOf(task)}${owner}${tried}${isOrphaned(task) ? ' (says running)' : ''}`;
  }
}
