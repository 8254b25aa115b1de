/**
 * Plays a sequence on several engines, step by step, and throws at the first answer that differs from the judge's. The
 * judge is the engine named first.
 *
 * Watches deliver in their own time, so what they delivered is compared where all must have arrived: at every `settle`,
 * and at the end. One thing may differ even then: an engine may be overtaken by a compaction where another had sent
 * everything before. It must then have delivered the beginning of what the others did, without a gap, and say so.
 */
import { inspect, isDeepStrictEqual } from 'node:util';
import type { KeyRange, Revision, Store } from 'signalbox/store';
import { type Answer, Player } from './player.ts';
import type { Recording } from './recording.ts';
import type { Command } from './sequence.ts';

export interface Engine {
  readonly name: string;
  /** A new store: empty, at revision 1. */
  open(): Promise<Store>;
}

/** What is known of a watch that every engine has open. */
interface Watched {
  readonly range: KeyRange;
  readonly since: Revision;
  /** Up to here it has certainly delivered everything. */
  settledAt: Revision;
  /** A compaction went past that. */
  mayBeOvertaken: boolean;
}

export interface ComparisonOptions {
  /** Is told the judge's answers. */
  readonly observe?: (command: Command, answer: Answer) => void;
  /** How long a watch may take to deliver; far more than any engine needs. */
  readonly patienceMs?: number;
}

export async function compareEngines(
  engines: readonly Engine[],
  commands: readonly Command[],
  options: ComparisonOptions = {},
): Promise<void> {
  const players = await Promise.all(engines.map(async ({ name, open }) => new Player(name, await open())));
  try {
    await new Comparison(players, options).run(commands);
  } finally {
    await Promise.all(players.map((player) => player.close()));
  }
}

class Comparison {
  readonly #players: readonly Player[];
  readonly #observe: (command: Command, answer: Answer) => void;
  readonly #patienceMs: number;
  readonly #watched: Watched[] = [];
  #current: Revision = 1;

  constructor(players: readonly Player[], { observe = () => {}, patienceMs = 10_000 }: ComparisonOptions) {
    this.#players = players;
    this.#observe = observe;
    this.#patienceMs = patienceMs;
  }

  async run(commands: readonly Command[]): Promise<void> {
    for (const [step, command] of commands.entries()) await this.#step(`step ${step}`, command);
    await this.#step('at the end', { do: 'settle' });
    await this.#alike('at the end', 'everything there is', (player) => player.everything());
  }

  async #step(when: string, command: Command): Promise<void> {
    if (command.do === 'settle') {
      await this.#settle(when);
      this.#observe(
        command,
        this.#players[0]?.recordings.map(({ delivered, over }) => ({ delivered, over })),
      );
      return;
    }
    const before = this.#current;
    const answer = await this.#alike(when, command, (player) => player.play(command, before));
    this.#observe(command, answer);
    if (command.do === 'transaction') this.#current = (answer as { revision?: Revision }).revision ?? before;
    if (command.do === 'revoke') await this.#askRevision(when);
    if (command.do === 'watch') this.#noteWatch(command.range, answer);
    if (command.do === 'compact' && answer === 'compacted') this.#noteCompaction(before - command.ago);
  }

  async #askRevision(when: string): Promise<void> {
    const nothing: Command = { do: 'transaction', transaction: { compare: [], success: [], failure: [] } };
    const answer = await this.#alike(when, 'the revision', (player) => player.play(nothing, this.#current));
    this.#current = (answer as { revision: Revision }).revision;
  }

  #noteWatch(range: KeyRange, answer: Answer): void {
    const { since } = answer as { since?: Revision };
    if (since !== undefined) this.#watched.push({ range, since, settledAt: since, mayBeOvertaken: false });
  }

  #noteCompaction(compacted: Revision): void {
    for (const watched of this.#watched) watched.mayBeOvertaken ||= watched.settledAt < compacted;
  }

  async #settle(when: string): Promise<void> {
    if (this.#watched.length === 0) return;
    const ranges = this.#watched.map((watched) => watched.range);
    // A watch that begins later delivers nothing of now.
    const latest = Math.max(...this.#watched.map((watched) => watched.since));
    do {
      this.#current = (await this.#alike(when, 'settling', (player) => player.settle(ranges))) as Revision;
    } while (this.#current <= latest);
    for (const [i, watched] of this.#watched.entries()) {
      const recordings = this.#players.map((player) => player.recordings[i] as Recording);
      const reached = await Promise.all(
        recordings.map((recording) => recording.reached(this.#current, this.#patienceMs)),
      );
      if (reached.includes(false)) throw this.#difference(when, `watch ${i} up to ${this.#current}`, reached);
      const told = recordings.map(({ delivered, over }) => ({ delivered: [...delivered], over }));
      const alike = watched.mayBeOvertaken ? overtakenAlike(told) : told.every((each) => equal(each, told[0]));
      if (!alike) throw this.#difference(when, `watch ${i} ${shown(watched)}`, told);
      watched.settledAt = this.#current;
    }
  }

  async #alike(when: string, what: unknown, ask: (player: Player) => Promise<Answer>): Promise<Answer> {
    const answers = await Promise.all(this.#players.map(ask));
    if (answers.every((answer) => equal(answer, answers[0]))) return answers[0];
    throw this.#difference(when, shown(what), answers);
  }

  #difference(when: string, what: string, answers: readonly Answer[]): Error {
    const lines = this.#players.map(({ name }, i) => `${name}: ${shown(answers[i])}`);
    return new Error(`the engines differ ${when}, revision ${this.#current}, in ${what}\n${lines.join('\n')}`);
  }
}

/** Those that were overtaken delivered the beginning of what the others did; and those that were not, the same. */
function overtakenAlike(told: readonly { delivered: readonly unknown[]; over: string | undefined }[]): boolean {
  const longest = told.reduce((most, each) => (each.delivered.length > most.delivered.length ? each : most));
  return told.every(({ delivered, over }) =>
    over === 'compacted'
      ? equal(delivered, longest.delivered.slice(0, delivered.length))
      : equal(delivered, longest.delivered),
  );
}

const equal = isDeepStrictEqual;

function shown(what: unknown): string {
  return typeof what === 'string' ? what : inspect(what, { depth: 12, breakLength: 120, maxStringLength: 200 });
}
