/** Shows something again whenever it changes: in place on a terminal, one below the other elsewhere, as JSON lines. */
import type { Command } from './command.ts';
import { pause, whenAborted } from '../clock.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { paintFor, print, printJson, screen } from './output.ts';
import { withBox } from './store.ts';
import { cut, type Layout, layoutFor } from './table.ts';
import { FullScreen } from './full-screen.ts';

/** What is shown: as lines for people, and as an object for programs. */
export interface Shown {
  lines(layout: Layout): readonly string[];
  json(): object;
}

/** On a terminal durations go on. */
const TICK_MS = 1_000;
/** Many changes at once are shown together. */
const GATHER_MS = 80;

/** Ends with Ctrl-C. */
export async function watched(command: Command, look: (box: Signalbox) => Promise<Shown>): Promise<void> {
  const isLive = screen().isTTY === true && !command.isJson;
  await withBox(command, async (box, signal) => {
    let changes = new AbortController();
    const changed = (): void => changes.abort();
    signal.addEventListener('abort', changed);
    const subscription = await box.on('*', changed);
    const full = isLive ? new FullScreen(changed) : undefined;
    let before = '';
    try {
      while (!signal.aborted) {
        changes = new AbortController();
        before = show(command, await look(box), full, before);
        await pause(GATHER_MS, signal);
        await (isLive ? pause(TICK_MS, changes.signal) : whenAborted(changes.signal));
      }
    } finally {
      // What was last seen stays on the terminal, as the output of any other command.
      full?.over(before);
      signal.removeEventListener('abort', changed);
      subscription.unsubscribe();
    }
  });
}

/** Answers what was shown. */
function show(command: Command, shown: Shown, full: FullScreen | undefined, before: string): string {
  if (command.isJson) {
    const json = shown.json();
    const text = JSON.stringify({ ...json, at: null });
    if (text !== before) printJson(json);
    return text;
  }
  const paint = paintFor(screen());
  if (full === undefined) {
    for (const line of [...(before === '' ? [] : ['']), ...shown.lines(layoutFor(screen(), paint))]) print(line);
    return 'shown';
  }
  const { width, height } = full;
  const all = shown.lines({ width, paint });
  const rest = all.length - height;
  const more = `… ${rest + 1} more lines; signalbox top scrolls`;
  full.draw(rest > 0 ? [...all.slice(0, height - 1), paint('dim', cut(more, width))] : all);
  return all.join('\n');
}
