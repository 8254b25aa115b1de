/** Pings a silent watch stream, and leaves a server that does not answer. */
import type { Clock, Timer } from '../../clock.ts';
import { UNAVAILABLE } from '../../grpc/status.ts';
import { CallFailure } from '../../grpc/transport.ts';
import type { Endpoints } from './endpoints.ts';

export class Watchdog {
  readonly #endpoints: Endpoints;
  readonly #clock: Clock;
  readonly #limitMs: number;
  #timer: Timer | undefined;

  constructor(endpoints: Endpoints, clock: Clock, limitMs: number) {
    this.#endpoints = endpoints;
    this.#clock = clock;
    this.#limitMs = limitMs;
  }

  /** Starts looking after the watch stream. */
  watch(): void {
    this.#timer ??= this.#clock.timer(this.#limitMs / 2, () => {
      this.#timer = undefined;
      this.#look();
    });
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #look(): void {
    const { link } = this.#endpoints;
    const stream = link?.openWatches;
    if (link === undefined || stream === undefined) return;
    if (stream.isSilent(this.#limitMs / 2, this.#limitMs)) {
      const told = `${link.where} has sent nothing on its watch stream for ${2 * this.#limitMs} ms`;
      this.#endpoints.leave(link, new CallFailure(UNAVAILABLE, told, false));
    } else {
      this.watch();
    }
  }
}
