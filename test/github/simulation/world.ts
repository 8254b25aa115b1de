// One simulated GitHub and its workers, under a time and a chance of their own. The workers run the procedures of
// src/core/github; GitHub loses answers, answers late, refuses without reason and reads from old copies; workers die and
// sleep. After every change of a ref, and whenever a worker begins to believe, the invariants are checked.

import {
  acquire,
  type Answer,
  GRACE_MS,
  type Held,
  type Instant,
  isPast,
  issueOfRef,
  type LockRecord,
  type Procedure,
  type Question,
  recordIn,
  release,
  renew,
  type Strategy,
} from '../../../src/core/github/index.ts';
import { LocalRepository, type RefChange } from '../../../src/github/local/repository.ts';
import { Random } from '../../../src/testing/simulation/random.ts';

export type Mutant = 'forced-update' | 'client-clock' | 'no-self-fence' | 'unconditional-delete';

export interface Weather {
  readonly faults: boolean;
  readonly crashes: boolean;
  readonly pauses: boolean;
  readonly skew: boolean;
  readonly sharedAccount: boolean;
  readonly staleReads: boolean;
}

export const STORM: Weather = {
  ...{ faults: true, crashes: true, pauses: true, skew: true, sharedAccount: true, staleReads: true },
};

export interface SimulationOptions {
  readonly seed: number;
  readonly weather?: Partial<Weather>;
  readonly mutant?: Mutant;
  readonly workers?: number;
  readonly issues?: number;
  readonly forMs?: number;
  /** The first worker dies after this request of its own. */
  readonly crashAfter?: number;
  /** Another protocol instead of ours. */
  readonly plain?: (worker: Worker, issue: number) => Procedure<boolean>;
}

export interface Report {
  readonly acquired: number;
  readonly refused: number;
  readonly stolen: number;
  readonly forced: number;
  readonly renewed: number;
  readonly unsure: number;
  readonly fenced: number;
  readonly released: number;
  readonly crashed: number;
  /** Requests of the first worker. */
  readonly requests: number;
}

export class Broken extends Error {
  constructor(seed: number, atMs: number, what: string) {
    super(`seed ${seed}, at ${Math.round(atMs)} ms: ${what}`);
  }
}

export const TIMEOUT_MS = 30_000;
const SETTINGS = { maxRetries: 4, initialBackoffMs: 1_000, maxBackoffMs: 16_000, timeoutMs: TIMEOUT_MS };
const HEARTBEAT_MS = 7_500;
/** Nobody reads it here. */
const ISO = '2026-01-01T00:00:00.000Z';
const CLIENT_TIMEOUT_MS = 5_000;
const PROJECTION: readonly string[] = ['assign', 'unassign', 'comment', 'edit-comment'];

interface Event {
  readonly atMs: number;
  readonly order: number;
  readonly call: () => void;
}

export class World {
  nowMs = 1_000_000_000_000;
  readonly random: Random;
  readonly repository = new LocalRepository();
  readonly workers: Worker[] = [];
  readonly weather: Weather;
  readonly counts = {
    acquired: 0,
    refused: 0,
    stolen: 0,
    forced: 0,
    renewed: 0,
    unsure: 0,
    fenced: 0,
    released: 0,
    crashed: 0,
  };
  readonly #options: SimulationOptions;
  readonly #events: Event[] = [];
  readonly #nonces = new Map<string, string>();
  #order = 0;
  #changes = 0;

  constructor(options: SimulationOptions) {
    this.#options = options;
    this.random = new Random(options.seed);
    this.weather = { ...STORM, ...options.weather };
    for (let issue = 1; issue <= (options.issues ?? 2); issue++) this.repository.addIssue(issue);
  }

  get mutant(): Mutant | undefined {
    return this.#options.mutant;
  }

  run(): Report {
    const { workers = 4, forMs = 600_000, crashAfter, plain } = this.#options;
    const endMs = this.nowMs + forMs;
    for (let number = 0; number < workers; number++) {
      const login = this.weather.sharedAccount ? 'bot' : `bot-${number}`;
      this.repository.collaborators.set(login, 'write');
      const dies =
        number === 0
          ? crashAfter
          : this.weather.crashes && this.random.chance(0.5)
            ? this.random.whole(1, 60)
            : undefined;
      this.workers.push(new Worker(this, number, login, endMs, dies, plain));
    }
    for (const worker of this.workers) this.after(this.random.whole(0, 2_000), () => worker.begin());
    // What is under way at the end is seen to its end, without new acquisitions.
    for (let event = this.#events.shift(); event !== undefined; event = this.#events.shift()) {
      this.nowMs = event.atMs;
      event.call();
      this.#check();
    }
    return { ...this.counts, requests: this.workers[0]?.requests ?? 0 };
  }

  after(ms: number, call: () => void): void {
    const event = { atMs: this.nowMs + ms, order: ++this.#order, call };
    let low = 0;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#events[middle] as Event).atMs <= event.atMs) low = middle + 1;
      else high = middle;
    }
    this.#events.splice(low, 0, event);
  }

  fail(what: string): never {
    throw new Broken(this.#options.seed, this.nowMs - 1_000_000_000_000, what);
  }

  /** Sends a request; `answered` is called once, unless the worker dies. */
  send(worker: Worker, question: Question, answered: (answer: Answer<unknown>) => void): void {
    const { random, weather } = this;
    const sent = worker.instant();
    // The driver reads its clock when it goes on, which may be long after the answer came.
    const give = (outcome: object): void => {
      const ms = this.mutant === 'client-clock' ? worker.instant().wallMs : Math.floor(this.nowMs / 1000) * 1000;
      answered(Object.assign(outcome, { sent, date: { ms, iso: ISO } }) as unknown as Answer<unknown>);
    };
    const unknown = (ms: number): void =>
      this.after(ms, () => answered({ kind: 'unknown', message: 'no answer', sent } as unknown as Answer<unknown>));
    if (question.ask === 'pause') {
      const ms = question.ms * (1 + (question.spread === true ? random.next() / 2 : 0));
      return this.after(ms, () => give({ kind: 'ok', value: null }));
    }
    this.#checkProjection(worker, question);
    const latency = () => random.whole(20, 400);
    const apply = (): object => this.#apply(worker, question);
    if (weather.faults) {
      const chance = random.next();
      if (chance < 0.02) return unknown(latency());
      if (chance < 0.05) return this.after(latency(), () => (apply(), unknown(CLIENT_TIMEOUT_MS)));
      if (chance < 0.06) {
        this.after(random.whole(1_000, 2 * TIMEOUT_MS), () => void apply());
        return unknown(CLIENT_TIMEOUT_MS);
      }
      const isWrite = question.ask.includes('-ref');
      if (chance < 0.09 && isWrite)
        return this.after(latency(), () => give({ kind: 'refused', status: 422, message: 'spurious' }));
      if (chance < 0.11 && isWrite)
        return this.after(latency(), () => (apply(), give({ kind: 'refused', status: 422, message: 'spurious' })));
      if (chance < 0.13)
        return this.after(latency(), () =>
          give({ kind: 'limited', waitMs: random.whole(1_000, 20_000), message: 'secondary' }),
        );
    }
    this.after(latency(), () => {
      const outcome = apply();
      this.after(latency(), () => give(outcome));
    });
  }

  #apply(worker: Worker, question: Question): object {
    const { repository, random, nowMs } = this;
    const ok = (value: unknown = null): object => ({ kind: 'ok', value });
    const done = (outcome: string): object =>
      outcome === 'done' ? ok() : { kind: 'refused', status: 422, message: outcome };
    switch (question.ask) {
      case 'issue': {
        const issue = repository.issues.get(question.issue);
        return issue === undefined
          ? { kind: 'missing', message: '' }
          : ok({ isOpen: issue.isOpen, assignees: [...issue.assignees] });
      }
      case 'ref': {
        const old = this.weather.staleReads && random.chance(0.1) ? random.whole(1, 3) : 0;
        const sha = repository.refBefore(question.ref, old);
        return sha === null ? { kind: 'missing', message: '' } : ok({ ref: question.ref, sha });
      }
      case 'refs':
        return ok(
          [...repository.refs]
            .filter(([ref]) => ref.startsWith(question.prefix) && random.chance(0.8))
            .map(([ref, sha]) => ({ ref, sha })),
        );
      case 'commit':
        return ok(repository.commits.get(question.sha));
      case 'make-commit': {
        const commit = repository.makeCommit(question.message, question.parents, nowMs);
        return commit === undefined
          ? { kind: 'refused', status: 422, message: 'no parent' }
          : ok({ sha: commit.sha, dateMs: commit.dateMs });
      }
      case 'make-ref':
        return done(repository.makeRef(question.ref, question.sha, nowMs));
      case 'move-ref': {
        const isEnd = repository.commits.get(question.sha)?.message.includes('"state":"released"') === true;
        if (this.mutant === 'unconditional-delete' && isEnd) return done(repository.deleteRef(question.ref, nowMs));
        return done(repository.moveRef(question.ref, question.sha, nowMs, this.mutant === 'forced-update'));
      }
      case 'move-refs':
        return done(repository.moveRefs(question.moves, nowMs));
      case 'delete-ref':
        return done(repository.deleteRef(question.ref, nowMs));
      case 'assign': {
        const issue = repository.issues.get(question.issue);
        if (issue === undefined) return { kind: 'missing', message: '' };
        repository.assign(issue, [question.login], nowMs);
        return ok({ assignees: [...issue.assignees] });
      }
      case 'unassign': {
        const issue = repository.issues.get(question.issue);
        if (issue !== undefined) repository.unassign(issue, [question.login], nowMs);
        return ok();
      }
      case 'comment':
        return ok({ id: repository.comment(question.issue, worker.login, question.body, nowMs)?.id ?? 0 });
      case 'comments':
        return ok(repository.commentsOf(question.issue).filter(() => random.chance(0.8)));
      case 'edit-comment': {
        const comment = repository.comments.get(question.id);
        if (comment !== undefined) comment.body = question.body;
        return ok();
      }
      case 'is-admin':
        return ok(worker.isAdmin);
      case 'pause':
        return ok();
    }
  }

  /** I1, I2, I3 and I5, for every change of a lock's ref. */
  #check(): void {
    for (; this.#changes < this.repository.changes.length; this.#changes++)
      this.#checkChange(this.repository.changes[this.#changes] as RefChange);
  }

  #checkChange({ ref, from, to, atMs }: RefChange): void {
    const issue = issueOfRef(ref);
    if (issue === undefined) return;
    if (to === null) this.fail(`I5: ${ref} was deleted`);
    const commit = this.repository.commits.get(to);
    const now = recordIn(commit?.message ?? '', issue);
    if (commit === undefined || now === undefined) this.fail(`I1: ${ref} points at no record`);
    if (from !== null && !commit.parents.includes(from))
      this.fail(`I1: ${ref} moved to a commit that was made for another tip`);
    if (from === null && this.repository.changes.some((one) => one.ref === ref && one.atMs < atMs))
      this.fail(`I5: ${ref} was made anew`);
    const key = `${issue}:${now.nonce}`;
    if (this.#nonces.has(key)) this.fail(`I1: nonce ${now.nonce} is in two tips`);
    this.#nonces.set(key, to);
    const parent = from === null ? undefined : this.repository.commits.get(from);
    const before = parent === undefined ? undefined : recordIn(parent.message, issue);
    if (before?.hold === now.hold) {
      if (before.state !== 'held' || now.epoch !== before.epoch || now.seq <= before.seq)
        this.fail(`I2: ${ref} goes on wrongly: ${JSON.stringify([before, now])}`);
      return;
    }
    if (now.epoch <= (before?.epoch ?? 0) || now.state !== 'held')
      this.fail(`I2: epoch ${now.epoch} after ${before?.epoch}`);
    const isForced = now.reason !== undefined;
    if (before?.state === 'held' && parent !== undefined) {
      this.counts[isForced ? 'forced' : 'stolen'] += 1;
      if (!isForced && atMs - parent.dateMs <= before.timeout_ms + GRACE_MS - 1_000)
        this.fail(`I3: ${ref} was taken from a lock that is not stale`);
    }
    for (const worker of this.workers) {
      if (worker.owns(now)) continue;
      // Only the one it was taken from; it may not even know yet that it had it.
      if (isForced && worker.owns(before)) worker.forcedAway(issue);
      else if (worker.believes(issue))
        this.fail(`I3: ${worker.name} still believes in issue ${issue}, which was just given away`);
    }
  }

  /** I4: who writes what people see is the one that the ref names. */
  #checkProjection(worker: Worker, question: Question): void {
    if (!PROJECTION.includes(question.ask) || this.#options.plain !== undefined) return;
    this.#check();
    const issue =
      'issue' in question
        ? question.issue
        : 'id' in question
          ? this.repository.comments.get(question.id)?.issue
          : undefined;
    if (issue === undefined) return this.fail(`I4: ${worker.name} writes to no issue`);
    const record = this.recordOf(issue);
    if (!worker.owns(record) && !worker.wasForcedAway(issue))
      this.fail(`I4: ${worker.name} writes on issue ${issue}, which it does not hold: ${JSON.stringify(record)}`);
  }

  recordOf(issue: number): LockRecord | undefined {
    const sha = this.repository.refs.get(`refs/signalbox/locks/issue-${issue}`);
    return sha === undefined ? undefined : recordIn(this.repository.commits.get(sha)?.message ?? '', issue);
  }

  /** Called when a worker begins to believe. */
  begins(worker: Worker, issue: number): void {
    if (worker.wasForcedAway(issue)) return;
    const other = this.workers.find((one) => one !== worker && one.believes(issue));
    if (other !== undefined && !other.wasForcedAway(issue))
      this.fail(`I3: ${worker.name} and ${other.name} both hold issue ${issue}`);
  }
}

const NEVER: Instant = { monotonicMs: Number.POSITIVE_INFINITY, wallMs: Number.POSITIVE_INFINITY };

export class Worker {
  readonly name: string;
  readonly isAdmin: boolean;
  readonly login: string;
  /** The acquisition that is under way, or held. */
  hold = '';
  requests = 0;
  readonly #world: World;
  readonly #skewMs: number;
  readonly #rate: number;
  readonly #beganMs: number;
  readonly #endMs: number;
  readonly #dies: number | undefined;
  readonly #plain: SimulationOptions['plain'];
  readonly #forcedAway = new Set<number>();
  #holds: readonly Held[] = [];
  #isWorking = false;
  #isDead = false;
  #number = 0;
  #plainIssue: number | undefined;

  constructor(
    world: World,
    number: number,
    login: string,
    endMs: number,
    dies: number | undefined,
    plain: SimulationOptions['plain'],
  ) {
    const { random, weather } = world;
    this.#world = world;
    this.name = `worker-${number}`;
    this.login = login;
    this.isAdmin = number === 1;
    this.#skewMs = weather.skew ? random.whole(-600_000, 600_000) : 0;
    // Clocks of different speed: one per cent, far more than real ones.
    this.#rate = weather.skew ? 0.99 + random.next() / 50 : 1;
    this.#beganMs = world.nowMs;
    this.#endMs = endMs;
    this.#dies = dies;
    this.#plain = plain;
  }

  instant(): Instant {
    const passed = (this.#world.nowMs - this.#beganMs) * this.#rate;
    return { monotonicMs: 5_000 + passed, wallMs: this.#beganMs + passed + this.#skewMs };
  }

  believes(issue: number): boolean {
    if (this.#isDead) return false;
    if (this.#plain !== undefined) return this.#plainIssue === issue;
    const held = this.#isWorking ? this.#holds.find((one) => one.issue === issue) : undefined;
    return held !== undefined && !this.#forcedAway.has(issue) && !isPast(held.deadline, this.instant());
  }

  owns(record: LockRecord | undefined): boolean {
    return record?.hold.startsWith(`${this.hold}.`) === true;
  }

  forcedAway(issue: number): void {
    this.#forcedAway.add(issue);
  }

  wasForcedAway(issue: number): boolean {
    return this.#forcedAway.has(issue);
  }

  begin(): void {
    if (this.#isDead || this.#world.nowMs >= this.#endMs) return;
    const { random, repository } = this.#world;
    const all = [...repository.issues.keys()];
    if (this.#plain !== undefined) return this.#beginPlain(random.pick(all));
    this.hold = `${this.name}.${++this.#number}`;
    this.#forcedAway.clear();
    const strategies: readonly Strategy[] = [
      'retry',
      'retry',
      'fail-fast',
      'steal-stale',
      'steal-stale',
      'steal-stale',
      ...(this.isAdmin && random.chance(0.5) ? ['force' as const] : []),
    ];
    const strategy = random.pick(strategies);
    const issues = random.chance(0.3) ? all : [random.pick(all)];
    const request = {
      ...{ issues, hold: this.hold, workerId: this.name, nodeId: 'node', taskInfo: {}, strategy, login: this.login },
      ...(strategy === 'force' && { reason: 'a test' }),
    };
    this.#run(acquire(request, SETTINGS), (outcome) => {
      if (outcome.kind === 'refused') {
        this.#world.counts.refused += 1;
        return this.#world.after(random.whole(0, 20_000), () => this.begin());
      }
      this.#world.counts.acquired += 1;
      this.#holds = this.#unfenced(outcome.holds);
      this.#isWorking = true;
      for (const { issue, deadline } of this.#holds)
        if (!isPast(deadline, this.instant())) this.#world.begins(this, issue);
      this.#work(this.#world.nowMs + random.whole(1_000, 3 * TIMEOUT_MS));
    });
  }

  #unfenced(holds: readonly Held[]): readonly Held[] {
    return this.#world.mutant === 'no-self-fence' ? holds.map((held) => ({ ...held, deadline: NEVER })) : holds;
  }

  #work(untilMs: number): void {
    const { random, counts, nowMs } = this.#world;
    if (nowMs >= untilMs) return this.#release();
    this.#world.after(Math.min(HEARTBEAT_MS, untilMs - nowMs), () => {
      if (this.#isDead) return;
      const settings = {
        nonce: `${this.hold}-${++this.#number}`,
        at: this.instant(),
        commentEveryMs: 15_000,
        together: random.chance(0.9),
        iso: '',
      };
      this.#run(renew(this.#holds, settings), (renewed) => {
        for (const { kind } of renewed) {
          if (kind === 'renewed') counts.renewed += 1;
          if (kind === 'unsure') counts.unsure += 1;
          if (kind === 'lost') counts.fenced += 1;
        }
        this.#holds = this.#unfenced(renewed.flatMap((one) => (one.kind === 'lost' ? [] : [one.held])));
        for (const one of renewed)
          if (one.kind === 'renewed' && this.believes(one.issue)) this.#world.begins(this, one.issue);
        if (this.#holds.length > 0) return this.#work(untilMs);
        this.#isWorking = false;
        this.#world.after(random.whole(0, 5_000), () => this.begin());
      });
    });
  }

  #release(): void {
    this.#isWorking = false;
    const [held, ...rest] = this.#holds;
    if (held === undefined) return this.#world.after(this.#world.random.whole(0, 10_000), () => this.begin());
    const settings = { nonce: `${this.hold}-${++this.#number}`, at: this.instant(), outcome: 'completed', iso: '' };
    this.#run(release(held, settings), ({ kind }) => {
      if (kind === 'released') this.#world.counts.released += 1;
      this.#holds = rest;
      this.#release();
    });
  }

  #beginPlain(issue: number): void {
    const { random } = this.#world;
    this.#run((this.#plain as NonNullable<SimulationOptions['plain']>)(this, issue), (isHeld) => {
      if (!isHeld) return this.#world.after(random.whole(0, 10_000), () => this.begin());
      this.#world.begins(this, issue);
      this.#plainIssue = issue;
      this.#world.after(random.whole(1_000, 2 * TIMEOUT_MS), () => {
        if (this.#isDead) return;
        this.#plainIssue = undefined;
        this.#world.send(this, { ask: 'unassign', issue, login: this.login }, () => this.begin());
      });
    });
  }

  /** Drives a procedure, as the driver does. The worker may sleep before it goes on, and may die after any request. */
  #run<Result>(procedure: Procedure<Result>, done: (result: Result) => void): void {
    const { random, weather } = this.#world;
    const go = (answers: readonly Answer<unknown>[]): void => {
      if (this.#isDead) return;
      const at = this.instant();
      const step = procedure.next(answers.map((answer) => ({ ...answer, at })));
      if (step.done === true) return done(step.value);
      const questions = step.value;
      const given: Answer<unknown>[] = [];
      let left = questions.length;
      if (left === 0) return go([]);
      for (const [place, question] of questions.entries()) {
        if (this.#isDead) return;
        if (question.ask !== 'pause' && ++this.requests === this.#dies) this.#die();
        this.#world.send(this, question, (answer) => {
          given[place] = answer;
          if (--left > 0) return;
          const sleepMs = weather.pauses && random.chance(0.01) ? random.whole(1_000, 2 * TIMEOUT_MS) : 0;
          this.#world.after(sleepMs, () => go(given));
        });
      }
    };
    go([]);
  }

  #die(): void {
    this.#isDead = true;
    this.#world.counts.crashed += 1;
  }
}

export function simulate(options: SimulationOptions): Report {
  return new World(options).run();
}
