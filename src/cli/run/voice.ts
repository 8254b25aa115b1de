/**
 * Prints the messages of `run` to stderr, never to stdout. On a terminal a wait is one line that is kept up to date and
 * removed when the command begins. Elsewhere a wait is not reported, or with --verbose by a line per change.
 *
 * It writes straight to the descriptor: Node's streams would make it non-blocking for the command as well.
 */
import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { systemClock } from '../../clock.ts';
import { complain, printable } from '../output.ts';

const STDERR = 2;
/** A shorter wait is not reported, because no one could read the line. */
const UNTOLD_MS = 150;
const UPDATE_MS = 1000;
const FALLBACK_COLUMNS = 80;

export class Voice {
  readonly #onTerminal: boolean;
  readonly #tellsWaits: boolean;
  #line = false;
  #timer: NodeJS.Timeout | undefined;
  #since = 0;

  constructor(tells: 'on-a-terminal' | 'always' | 'never') {
    this.#onTerminal = isatty(STDERR);
    this.#tellsWaits = tells === 'always' || (tells === 'on-a-terminal' && this.#onTerminal);
  }

  /** Prints a message that matters everywhere, terminal or not. */
  readonly say = (text: string): void => {
    this.#erase();
    complain(`signalbox: ${printable(text)}`);
  };

  /** `look` describes the wait: with durations for a terminal, and without them for a log. */
  waiting(look: (sinceMs: number) => Promise<{ line: string; lasting: string } | undefined>): void {
    if (!this.#tellsWaits || this.#timer !== undefined) return;
    this.#since = systemClock.monotonic();
    let told = '';
    const update = (): void => {
      const timer = (this.#timer = setTimeout(update, UPDATE_MS));
      look(systemClock.monotonic() - this.#since).then(
        (news) => {
          if (news === undefined || this.#timer !== timer) return;
          if (this.#onTerminal) this.#rewrite(news.line);
          else if (news.lasting !== told) this.say(news.lasting);
          told = news.lasting;
        },
        // The wait itself reports what is wrong.
        () => undefined,
      );
    };
    this.#timer = setTimeout(update, UNTOLD_MS);
  }

  /** Called when the wait is over. */
  done(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#erase();
  }

  #rewrite(text: string): void {
    const columns = columnsOf() - 1;
    const line = `signalbox: ${printable(text)}`;
    write(`\r${line.length > columns ? `${line.slice(0, columns - 1)}…` : line}\x1b[K`);
    this.#line = true;
  }

  #erase(): void {
    if (this.#line) write('\r\x1b[K');
    this.#line = false;
  }
}

function write(text: string): void {
  try {
    writeSync(STDERR, text);
  } catch {
    // The reader is gone. The command matters more.
  }
}

/** Node reopens a terminal, so using its stream changes nothing for the command. */
function columnsOf(): number {
  return process.stderr.columns || FALLBACK_COLUMNS;
}
