/** Shows a pipeline to the user who drives it: a picture on a terminal, lines elsewhere, JSON for programs. */
import type { Command } from '../command.ts';
import type { PipelineRecord } from '../../core/index.ts';
import { paintFor, print, printable, printJson, say, screen } from '../output.ts';
import { withoutEscapes } from './columns.ts';
import { pipelineJson } from '../../json/pipeline.ts';
import { Live } from './live.ts';
import { changesOf } from './words.ts';

export interface Show {
  changed(record: PipelineRecord): void;
  /** Output of a phase's command, as it arrives. */
  printed(phase: string, text: string): void;
  /** What the driver itself has to say about a phase. */
  message(phase: string, text: string): void;
  /** A message for people, such as that the pipeline is being stopped. */
  say(line: string): void;
  /** The state in which we leave it. */
  over(record: PipelineRecord | undefined): void;
}

/** `hasDecided`: the user has answered the question that the pipeline waits for. */
export function showFor(command: Command, hasDecided: boolean): Show {
  if (command.isJson) return new JsonLines();
  const terminal = screen();
  const isLive = terminal.isTTY === true && process.env['TERM'] !== 'dumb';
  return isLive ? new Live(paintFor(terminal)) : new Lines(terminal.isTTY === true, '', hasDecided);
}

/** For one of several pipelines that a process drives: never a picture, and every line names the pipeline. */
export function showOneOfMany(command: Command, id: string): Show {
  return command.isJson ? new JsonLines(id) : new Lines(screen().isTTY === true, `${id}: `);
}

/** How long to wait for the end of a line before printing it. */
const LONGEST_LINE = 65_536;

class Lines implements Show {
  readonly #isTerminal: boolean;
  /** Before each line that does not name the pipeline itself. */
  readonly #prefix: string;
  readonly #hasDecided: boolean;
  #record: PipelineRecord | undefined;
  readonly #open = new Map<string, string>();

  constructor(isTerminal: boolean, prefix = '', hasDecided = false) {
    this.#isTerminal = isTerminal;
    this.#prefix = prefix;
    this.#hasDecided = hasDecided;
  }

  changed(record: PipelineRecord): void {
    this.#flush();
    const own = `pipeline/${record.id}: `;
    for (const line of changesOf(this.#record, record, this.#hasDecided))
      print(printable(line.startsWith(own) ? line : this.#prefix + line));
    this.#record = record;
  }

  printed(phase: string, text: string): void {
    const lines = ((this.#open.get(phase) ?? '') + text).split('\n');
    const rest = lines.pop() ?? '';
    if (lines.length > 0) this.#print(phase, lines);
    this.#open.set(phase, rest);
    if (rest.length > LONGEST_LINE) this.#flush();
  }

  message(phase: string, text: string): void {
    this.say(printable(`${this.#prefix}${phase}: ${text}`));
  }

  say(line: string): void {
    this.#flush();
    say(line);
  }

  over(): void {
    this.#flush();
  }

  #flush(): void {
    for (const [phase, text] of this.#open) if (text !== '') this.#print(phase, [text]);
    this.#open.clear();
  }

  /** Prints several lines at once, because output may come by the megabyte. */
  #print(phase: string, lines: readonly string[]): void {
    const shown = this.#isTerminal ? lines.map((line) => printable(withoutEscapes(line))) : lines;
    const prefix = printable(this.#prefix + phase);
    print(shown.map((line) => `${prefix} | ${line}`).join('\n'));
  }
}

class JsonLines implements Show {
  readonly #pipeline: { readonly pipeline?: string };

  constructor(id?: string) {
    this.#pipeline = id === undefined ? {} : { pipeline: id };
  }

  changed(record: PipelineRecord): void {
    printJson({ type: 'change', ...pipelineJson(record) });
  }

  printed(phase: string, text: string): void {
    printJson({ type: 'output', ...this.#pipeline, phase, text });
  }

  message(phase: string, text: string): void {
    printJson({ type: 'message', ...this.#pipeline, phase, text });
  }

  say(): void {
    // Programs see it in the changes.
  }

  over(): void {
    // The caller prints the result.
  }
}
