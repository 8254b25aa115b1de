/**
 * Stories: transcripts that a person can read and a machine can check.
 *
 *     > ci-1 releases                 what is asked
 *     = released                      what the one who asked is told
 *     ! lock:released ci-1 #1         an event
 *     + ci-2: acquired #2             what one who waited is told
 *     - ci-3 #1: forced by admin      a hold that ended although its holder did not ask for it
 *     ~ ci-2 #2, then ci-4            how things stand afterwards
 *     # why                           a remark to the reader
 *
 * A story is told again from its `>` lines alone, and must come out the same, letter by letter. What a line means,
 * and what comes of it, is up to the world it is told in: the bare machines, or a runtime on some engine.
 */
import { expect, it } from 'vitest';
import { abridged, isForPrograms, type Place } from './runtimes.ts';
import { stores } from './settings.ts';

export interface World {
  /** Does what the line says. */
  hear(line: string): Telling | Promise<Telling>;
}

export interface Telling {
  /** Nothing was asked of the resource: time passed, or a lease ended. */
  readonly outcome?: string;
  readonly events?: readonly string[];
  readonly answers?: readonly string[];
  readonly losses?: readonly string[];
  readonly state: string;
}

export interface Setting {
  onMachine(): World;
  /** Not for what only the bare machine can show. */
  inPrograms?(place: Place): World;
}

/** `story('a free lock is acquired', aLock)` followed by its transcript in backticks. */
export function story(title: string, setting: Setting): (transcript: TemplateStringsArray) => void {
  return ({ raw: [transcript = ''] }) => {
    it(title, async () => {
      expect(await retell(setting.onMachine(), transcript)).toBe(plain(transcript));
    });
    const inPrograms = setting.inPrograms?.bind(setting);
    if (inPrograms === undefined || !isForPrograms(transcript)) return;
    for (const { name, open } of stores) {
      it.concurrent(`${title}, ${name}`, async ({ onTestFinished }) => {
        const place = await open();
        onTestFinished(() => place.close());
        expect(abridged(await retell(inPrograms(place), transcript))).toBe(abridged(transcript));
      });
    }
  };
}

/** The story as it goes in this world. */
export async function retell(world: World, transcript: string): Promise<string> {
  const told: string[] = [];
  for (const line of linesOf(transcript)) {
    if (line.startsWith('#')) told.push(line);
    if (!line.startsWith('> ')) continue;
    told.push(line, ...written(await world.hear(line.slice(2))));
  }
  return told.join('\n');
}

function written({ outcome, events = [], answers = [], losses = [], state }: Telling): string[] {
  return [
    ...(outcome === undefined ? [] : [`= ${outcome}`]),
    ...events.map((event) => `! ${event}`),
    ...answers.map((answer) => `+ ${answer}`),
    ...losses.map((loss) => `- ${loss}`),
    `~ ${state}`,
  ];
}

/** Indentation and empty lines are for the eye. */
function plain(transcript: string): string {
  return linesOf(transcript).join('\n');
}

export function linesOf(transcript: string): string[] {
  return transcript
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/**
 * Tokens by the order in which they were first seen: what an engine gives out depends on its revisions, but the
 * order does not. A token that is new and yet smaller than an earlier one is shown as what it is.
 */
export class Tokens {
  readonly #seen: number[] = [];

  name(token: number): string {
    const place = this.#seen.indexOf(token);
    if (place >= 0) return `#${place + 1}`;
    const largest = this.#seen.at(-1);
    if (largest !== undefined && token < largest) return `#${token} (smaller than ${largest}!)`;
    this.#seen.push(token);
    return `#${this.#seen.length}`;
  }

  named(name: number): number {
    const token = this.#seen[name - 1];
    if (token === undefined) throw new Error(`the story has not come to #${name} yet`);
    return token;
  }
}
