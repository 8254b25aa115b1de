/** What a server counts of itself, besides what its signalbox counts. */
import { counter, type Families, gauge, histogram, rendered } from '../metrics/families.ts';
import { familiesOf, type MetricsSources } from '../metrics/prometheus.ts';
import { Histogram } from '../runtime/observe/measures.ts';
import type { EventHub } from './event-hub.ts';

export class ServerFigures {
  readonly #sources: MetricsSources;
  readonly #hub: EventHub;
  /** By operation and status: both are our own words. */
  readonly #requests = new Map<string, Map<number, number>>();
  readonly #took = new Histogram();

  constructor(sources: MetricsSources, hub: EventHub) {
    this.#sources = sources;
    this.#hub = hub;
  }

  answered(operation: string, status: number, ms: number): void {
    const ofOne = this.#requests.get(operation) ?? new Map<number, number>();
    this.#requests.set(operation, ofOne.set(status, (ofOne.get(status) ?? 0) + 1));
    this.#took.record(ms);
  }

  /** Events are counted from the first scrape on: before it, nobody needs to follow them. */
  async text(): Promise<string> {
    await this.#hub.start();
    return rendered({ ...(await familiesOf(this.#sources)), ...this.#families() });
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
