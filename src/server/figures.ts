/** Metrics of the server itself, besides those of its signalbox. */
import { counter, type Families, gauge, histogram, rendered } from '../metrics/families.ts';
import { familiesOf, type MetricsSources } from '../metrics/prometheus.ts';
import { Histogram } from '../runtime/observe/measures.ts';
import type { EventHub } from './event-hub.ts';
import type { BoardView, GitHubBoard } from '../github/board.ts';

export class ServerFigures {
  readonly #sources: MetricsSources;
  readonly #hub: EventHub;
  readonly #github: GitHubBoard | undefined;
  /** By operation and status, which are words of ours and name no user. */
  readonly #requests = new Map<string, Map<number, number>>();
  readonly #took = new Histogram();

  constructor(sources: MetricsSources, hub: EventHub, github: GitHubBoard | undefined) {
    this.#sources = sources;
    this.#hub = hub;
    this.#github = github;
  }

  answered(operation: string, status: number, ms: number): void {
    const ofOne = this.#requests.get(operation) ?? new Map<number, number>();
    this.#requests.set(operation, ofOne.set(status, (ofOne.get(status) ?? 0) + 1));
    this.#took.record(ms);
  }

  /** Counts events from the first scrape on, because following them costs something and nobody reads the count before. */
  async text(): Promise<string> {
    await this.#hub.start();
    const [families, board] = await Promise.all([familiesOf(this.#sources), this.#github?.look()]);
    return rendered({ ...families, ...this.#families(), ...boardFamilies(board) });
  }

  #families(): Families {
    const requests = [...this.#requests].flatMap(([operation, byStatus]) =>
      [...byStatus].map(([status, count]) => [{ operation, status: String(status) }, count] as const),
    );
    const events = [...this.#hub.counts].map(([type, count]) => [{ type }, count] as const);
    return {
      signalbox_events_total: counter('Events of the whole fleet since the first scrape of this server.', events),
      signalbox_event_readers: gauge('Clients that follow events of this server now.', this.#hub.readers),
      signalbox_http_requests_total: counter('Requests that this server answered.', requests),
      signalbox_http_request_seconds: histogram('Time from a request to its answer.', this.#took.view()),
    };
  }
}

/** The number of all locks in the repository. Workers report their own locks in their own metrics. */
function boardFamilies(board: BoardView | undefined): Families {
  if (board === undefined || board.repository === null || board.asOf === null) return {};
  const { repository, locks } = board;
  return {
    signalbox_github_locks: gauge('Issues that are locked in the repository.', [[{ repository }, locks.length]]),
  };
}
