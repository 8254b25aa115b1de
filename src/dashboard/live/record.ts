/**
 * The newest entries of the record. The server looks at the whole record once, and from then on reports each entry as
 * it is written: reading the newest again and again would make it look at every entry each time.
 */
import { pauseBefore } from '../model/link.ts';
import { SentEvents } from '../model/sent.ts';
import { newestRecorded, type Recorded } from '../model/timeline.ts';
import { stream } from './api.ts';
import { pause } from './connection.ts';

/** Reading a long record takes at most a tenth of the time, however often the stream ends. */
const REST = 10;

export async function followRecord(
  most: number,
  over: AbortSignal,
  tell: (rows: readonly Recorded[]) => void,
): Promise<void> {
  for (let tries = 1; !over.aborted; tries++) {
    const begun = performance.now();
    let lookedMs: number | undefined;
    try {
      let rows: readonly Recorded[] = [];
      const sent = new SentEvents();
      for await (const piece of stream(`/v1/witness/watch?last=${most}`, over)) {
        const told = sent.push(piece).filter(({ event }) => event === 'entry');
        if (over.aborted || told.length === 0) continue;
        lookedMs ??= performance.now() - begun;
        tries = 0;
        rows = newestRecorded(
          rows,
          told.map(({ data }) => JSON.parse(data) as Recorded),
          most,
        );
        tell(rows);
      }
    } catch {
      // What was read before stays in sight; the page's own stream notices a server that is gone.
    }
    if (over.aborted) return;
    await pause(Math.max(pauseBefore(tries), REST * (lookedMs ?? performance.now() - begun)), over);
  }
}
