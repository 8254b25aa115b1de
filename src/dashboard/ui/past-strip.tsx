/** Says that the page shows an earlier time, what it is based on, and what the record cannot tell. */
import type { JSX } from 'preact';
import type { Past } from '../live/travel.ts';
import { clock, count, duration, exact, plural } from '../model/time.ts';
import { backToNow } from './app.ts';
import { Button, Strip } from './parts.tsx';

export function PastStrip({ past }: { past: Past }): JSX.Element {
  const back = (
    <Button onClick={backToNow}>
      Back to now <kbd>L</kbd>
    </Button>
  );
  return (
    <Strip look="past" sign="unknown" deed={back}>
      <b class="strong num" title={exact(past.at)}>
        You look at {clock(past.at)}
      </b>
      , {duration(Date.now() - past.at)} ago. {restsOn(past)}
    </Strip>
  );
}

/** Says first what is missing, then what is known. */
export function restsOn({ is, why, at, read, isCut, hasGap, begins, trimmed }: Past): string {
  switch (is) {
    case 'off':
      return 'The witness of this store is off, so nobody recorded what was then.';
    case 'failed':
      return `The record could not be read: ${why}.`;
    case 'reading':
      return `Reading the record: ${plural(read, 'entry', 'entries')} so far.`;
    case 'frozen':
      return 'The page is frozen: nothing moves until you let it go on, and nothing can be changed.';
    case 'ready': {
      const lacks = [
        begins === undefined ? 'The record is empty.' : '',
        begins !== undefined && at < begins ? `The record begins later, at ${clock(begins)}.` : '',
        isCut ? `Only the first ${count(read)} entries were read, so other resources are missing.` : '',
        hasGap ? 'Entries were trimmed while the page read the record, so some are missing.' : '',
        trimmed > 0 ? `${plural(trimmed, 'resource')} had older entries, which were trimmed.` : '',
      ].filter((one) => one !== '');
      return [...lacks, 'Rebuilt from the record, without who gave up waiting; nothing can be changed.'].join(' ');
    }
  }
}
