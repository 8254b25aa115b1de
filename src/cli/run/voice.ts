/**
 * Prints the messages about a wait to stderr, never to stdout. On a terminal a wait is a text that is kept up to date and
 * removed when the command begins. Elsewhere, in a log or for an agent, it is a line at first and every 30 s, so that a wait
 * does not look like a program that hangs; with --verbose also a line per change.
 *
 * It writes straight to the descriptor: Node's streams would make it non-blocking for the command as well.
 */
import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { systemClock } from '../../clock.ts';
import { printable, say } from '../output.ts';
import { fit, wrapped } from '../pipeline/columns.ts';

const STDERR = 2;
/** A shorter wait is not reported: nobody could read the line, or it would only lengthen a log. */
const UNTOLD_MS = 150;
const UNTOLD_IN_LOGS_MS = 1000;
/** How often a log says that a wait goes on. */
const AGAIN_MS = 30_000;
const UPDATE_MS = 1000;
const FALLBACK_COLUMNS = 80;
/** On a narrow terminal the text about a wait takes several lines; it names the reason, which must not be cut off. */
const MOST_LINES = 4;

/** Which waits are reported: `now-and-then` at first and every 30 s, `every-change` also in between. */
export type Tells = 'now-and-then' | 'every-change' | 'never';

/** A wait as it is now, in words. */
export interface LookedAt {
  /** With durations, for a terminal. */
  readonly line: string;
  /** The same text for as long as nothing changes: a log gets a line when it does. */
  readonly lasting: string;
  /** That line, if it is to say more than the lasting text. */
  readonly noted?: string;
}

/** The last line about a wait in a log, and when it was printed. */
export interface Told {
  readonly text: string;
  readonly atMs: number;
}

/** Whether a log gets a line about a wait; `text` is the line that it would get. */
export function isDue(told: Told | undefined, text: string, nowMs: number, tells: Tells): boolean {
  if (tells === 'never') return false;
  if (told === undefined || nowMs - told.atMs >= AGAIN_MS) return true;
  return tells === 'every-change' && text !== told.text;
}

export class Voice {
  /** The one that reports a wait now: other messages go through it, because a line of their own would break its text. */
  static current: Voice | undefined;
  readonly #onTerminal: boolean;
  readonly #tells: Tells;
  /** How many lines the text about the wait takes now. */
  #lines = 0;
  #timer: NodeJS.Timeout | undefined;
  #since = 0;

  constructor(tells: Tells) {
    this.#onTerminal = isatty(STDERR);
    this.#tells = tells;
  }

  /** Prints a message that matters everywhere, terminal or not. */
  readonly say = (text: string): void => {
    this.#erase();
    say(text);
  };

  /** Whether the user asked for silence about waits. */
  get isSilent(): boolean {
    return this.#tells === 'never';
  }

  /** `look` describes the wait; its argument is how long it has lasted. */
  waiting(look: (sinceMs: number) => Promise<LookedAt | undefined>): void {
    Voice.current = this;
    if (this.#tells === 'never' || this.#timer !== undefined) return;
    this.#since = systemClock.monotonic();
    let told: Told | undefined;
    const update = (): void => {
      const timer = (this.#timer = setTimeout(update, UPDATE_MS));
      look(systemClock.monotonic() - this.#since).then(
        (news) => {
          if (news === undefined || this.#timer !== timer) return;
          if (this.#onTerminal) return this.#rewrite(news.line);
          const atMs = systemClock.monotonic();
          if (!isDue(told, news.lasting, atMs, this.#tells)) return;
          this.say(news.lasting === told?.text ? news.line : (news.noted ?? news.lasting));
          told = { text: news.lasting, atMs };
        },
        // The wait itself reports what is wrong.
        () => undefined,
      );
    };
    const isQuick = this.#onTerminal || this.#tells === 'every-change';
    this.#timer = setTimeout(update, isQuick ? UNTOLD_MS : UNTOLD_IN_LOGS_MS);
  }

  /** Called when the wait is over. */
  done(): void {
    if (Voice.current === this) Voice.current = undefined;
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
