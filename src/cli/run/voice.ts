/**
 * Prints the messages of `run` to stderr, never to stdout. On a terminal a wait is a text that is kept up to date and
 * removed when the command begins. Elsewhere a wait is not reported, or with --verbose by a line per change.
 *
 * It writes straight to the descriptor: Node's streams would make it non-blocking for the command as well.
 */
import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { systemClock } from '../../clock.ts';
import { complain, printable } from '../output.ts';
import { fit, wrapped } from '../pipeline/columns.ts';

const STDERR = 2;
/** A shorter wait is not reported, because no one could read the line. */
const UNTOLD_MS = 150;
const UPDATE_MS = 1000;
const FALLBACK_COLUMNS = 80;
/** On a narrow terminal the text about a wait takes several lines; it names the reason, which must not be cut off. */
const MOST_LINES = 4;

export class Voice {
  readonly #onTerminal: boolean;
  readonly #tellsWaits: boolean;
  /** How many lines the text about the wait takes now. */
  #lines = 0;
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
    const all = wrapped(`signalbox: ${printable(text)}`, columns);
    const lines = all.length > MOST_LINES ? [...all.slice(0, MOST_LINES - 1), `${all[MOST_LINES - 1]} …`] : all;
    write(`${this.#back()}${lines.map((line) => fit(line, columns)).join('\x1b[K\n')}\x1b[J`);
    this.#lines = lines.length;
  }

  #erase(): void {
    if (this.#lines > 0) write(`${this.#back()}\x1b[J`);
    this.#lines = 0;
  }

  /** Moves to where the text began. */
  #back(): string {
    return this.#lines > 1 ? `\x1b[${this.#lines - 1}A\r` : '\r';
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
