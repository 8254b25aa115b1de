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
  /** Whether the request makes content that notifies people. */
  readonly isContent: boolean;
}

export type Verdict =
  | { readonly kind: 'fine' }
  | { readonly kind: 'primary' }
  | { readonly kind: 'secondary'; readonly retryAfterSeconds: number };

/** The highest use of each limit, as a share of it. */
export type Peaks = Limits;

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** Sums the points spent within the last minute or hour. */
class Window {
  readonly #lengthMs: number;
  readonly #entries: { readonly atMs: number; readonly amount: number }[] = [];
  #first = 0;
  #sum = 0;

  constructor(lengthMs: number) {
    this.#lengthMs = lengthMs;
  }

  sum(nowMs: number): number {
    for (
      let entry = this.#entries[this.#first];
      entry !== undefined && entry.atMs <= nowMs - this.#lengthMs;
      entry = this.#entries[this.#first]
    ) {
      this.#sum -= entry.amount;
      this.#first += 1;
    }
    return this.#sum;
  }

  add(amount: number, nowMs: number): void {
    this.#entries.push({ atMs: nowMs, amount });
    this.#sum += amount;
  }
}

export class Account {
  readonly #limits: Limits;
  readonly #points = new Window(MINUTE_MS);
  readonly #contentInMinute = new Window(MINUTE_MS);
  readonly #contentInHour = new Window(HOUR_MS);
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

  /** For tests: sets how much was used. */
  exhaust(resource: Cost['resource'], nowMs: number): void {
    this.#roll(nowMs);
    this.#used[resource] = this.#limits.requestsPerHour;
  }

  spend(cost: Cost, nowMs: number): Verdict {
    this.#roll(nowMs);
    const { requestsPerHour, pointsPerMinute, contentPerMinute, contentPerHour } = this.#limits;
    const share = (name: keyof Limits, used: number): number => Math.max(this.#peaks[name], used / this.#limits[name]);
    if (this.#used[cost.resource] >= requestsPerHour) return { kind: 'primary' };
    const content = cost.isContent ? 1 : 0;
    const points = this.#points.sum(nowMs) + cost.points;
    const inMinute = this.#contentInMinute.sum(nowMs) + content;
    const inHour = this.#contentInHour.sum(nowMs) + content;
    const isOver = points > pointsPerMinute || inMinute > contentPerMinute || inHour > contentPerHour;
    if (isOver) return { kind: 'secondary', retryAfterSeconds: 60 };
    this.#points.add(cost.points, nowMs);
    this.#contentInMinute.add(content, nowMs);
    this.#contentInHour.add(content, nowMs);
    this.#used[cost.resource] += 1;
    const { core, graphql } = this.#used;
    this.#peaks = {
      requestsPerHour: share('requestsPerHour', Math.max(core, graphql)),
      pointsPerMinute: share('pointsPerMinute', points),
      contentPerMinute: share('contentPerMinute', inMinute),
      contentPerHour: share('contentPerHour', inHour),
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
