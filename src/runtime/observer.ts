/**
 * What a part of a signalbox hears of this process. `Signalbox` connects the parts, in one place; a part names only what
 * it acts on. Nothing here may throw or wait: it is called on the way of a write or a watch.
 */
import type { Event } from '../core/index.ts';

export interface RuntimeObserver {
  /** Events that no write carries. */
  localEvents?(resource: string, events: readonly Event[]): void;
  /** A holder that may hold something else has begun to wait, or was granted one thing while it waits for another. */
  waitChanged?(): void;
  /** Leases of other processes have ended. */
  leasesEnded?(): void;
  /** Called now and then, in case news was missed. */
  backstop?(): void;
}
