/**
 * How a part of a signalbox observes this process. `Signalbox` connects the parts in one place; a part implements only what it
 * acts on. Observers must neither throw nor wait: a write or a watch calls them.
 */
import type { Event } from '../core/index.ts';
import type { Session } from './session/session.ts';

export interface RuntimeObserver {
  /** Events that no write carries. */
  localEvents?(resource: string, events: readonly Event[]): void;
  /** A holder that may hold something else has begun to wait, or was granted one thing while it waits for another. */
  waitChanged?(): void;
  /** Leases of other processes have ended. */
  leasesEnded?(): void;
  /** A session of this process has ended. */
  sessionEnded?(session: Session): void;
  /** Called now and then, in case an event was missed. */
  backstop?(): void;
}
