/** GitHub's documented limits, counted for each token. */

export interface Limits {
  readonly requestsPerHour: number;
  readonly pointsPerMinute: number;
  readonly contentPerMinute: number;
  readonly contentPerHour: number;
}

export const DOCUMENTED: Limits = {
  ...{ requestsPerHour: 5_000, pointsPerMinute: 900, contentPerMinute: 80, contentPerHour: 500 },
};

export interface Cost {
  readonly resource: 'core' | 'graphql';
  readonly points: number;
  /** It makes something that people are notified of. */
  readonly isContent: boolean;
}

export type Verdict =
  | { readonly kind: 'fine' }
  | { readonly kind: 'primary' }
  | { readonly kind: 'secondary'; readonly retryAfterSeconds: number };

/** The most that was used of each limit, as a share of it. */
export interface Peaks {
  readonly requestsPerHour: number;
  readonly pointsPerMinute: number;
  readonly contentPerMinute: number;
  readonly contentPerHour: number;
}

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

interface Spent extends Cost {
  readonly atMs: number;
}

export class Account {
  readonly #limits: Limits;
  #spent: Spent[] = [];
  #windowMs: Record<Cost['resource'], number> = { core: 0, graphql: 0 };
  #used: Record<Cost['resource'], number> = { core: 0, graphql: 0 };
  #peaks: Peaks = { requestsPerHour: 0, pointsPerMinute: 0, contentPerMinute: 0, contentPerHour: 0 };

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  get peaks(): Peaks {
    return this.#peaks;
  }

  headers(resource: Cost['resource'], nowMs: number): Readonly<Record<string, string>> {
    this.#roll(nowMs);
    const { requestsPerHour } = this.#limits;
    return {
      'x-ratelimit-limit': String(requestsPerHour),
      'x-ratelimit-remaining': String(Math.max(0, requestsPerHour - this.#used[resource])),
      'x-ratelimit-used': String(this.#used[resource]),
      'x-ratelimit-reset': String(Math.ceil((this.#windowMs[resource] + HOUR_MS) / 1000)),
      'x-ratelimit-resource': resource,
    };
  }

  /** For tests: as if so much had been used. */
  exhaust(resource: Cost['resource'], nowMs: number): void {
    this.#roll(nowMs);
    this.#used[resource] = this.#limits.requestsPerHour;
  }

  spend(cost: Cost, nowMs: number): Verdict {
    this.#roll(nowMs);
    const { requestsPerHour, pointsPerMinute, contentPerMinute, contentPerHour } = this.#limits;
    if (this.#used[cost.resource] >= requestsPerHour) return { kind: 'primary' };
    this.#spent = this.#spent.filter(({ atMs }) => atMs > nowMs - HOUR_MS);
    const spent = [...this.#spent, { ...cost, atMs: nowMs }];
    const minute = spent.filter(({ atMs }) => atMs > nowMs - MINUTE_MS);
    const points = sum(minute.map((one) => one.points));
    const content = (list: readonly Spent[]): number => list.filter(({ isContent }) => isContent).length;
    const isOver = points > pointsPerMinute || content(minute) > contentPerMinute || content(spent) > contentPerHour;
    if (isOver) return { kind: 'secondary', retryAfterSeconds: 60 };
    this.#spent = spent;
    this.#used[cost.resource] += 1;
    const { core, graphql } = this.#used;
    this.#peaks = {
      requestsPerHour: Math.max(this.#peaks.requestsPerHour, Math.max(core, graphql) / requestsPerHour),
      pointsPerMinute: Math.max(this.#peaks.pointsPerMinute, points / pointsPerMinute),
      contentPerMinute: Math.max(this.#peaks.contentPerMinute, content(minute) / contentPerMinute),
      contentPerHour: Math.max(this.#peaks.contentPerHour, content(spent) / contentPerHour),
    };
    return { kind: 'fine' };
  }

  #roll(nowMs: number): void {
    for (const resource of ['core', 'graphql'] as const) {
      if (nowMs < this.#windowMs[resource] + HOUR_MS) continue;
      this.#windowMs[resource] = nowMs;
      this.#used[resource] = 0;
    }
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((one, other) => one + other, 0);
}
