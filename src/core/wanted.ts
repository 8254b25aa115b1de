/** A resource to hold, in one word: `main`, `docs:shared`, `agents=1/4`. The same on the command line and in runbooks. */
import type { LockMode } from './lock.ts';
import { nameProblem } from './name.ts';
import { distance } from './nearest.ts';
import { shown } from './shown.ts';

export interface WantedLock {
  readonly lock: string;
  readonly mode?: LockMode;
}

export interface WantedSlots {
  readonly semaphore: string;
  readonly weight?: number;
  readonly capacity?: number;
}

export type Wanted<Want> =
  | { readonly ok: true; readonly want: Want }
  | { readonly ok: false; readonly problem: string };

const PREFIXES = { lock: /^lock\/(?=.)/s, semaphore: /^sem(aphore)?\/(?=.)/s } as const;

/**
 * Names as they are printed are names as they are accepted: `lock/main` is the lock `main`. A lock that is itself called
 * `lock/main` is reached as `lock/lock/main`, which is how it is printed.
 */
export function plainName(kind: keyof typeof PREFIXES, text: string): string {
  return text.replace(PREFIXES[kind], '');
}

/** `NAME[:shared|:exclusive]`. */
export function wantedLock(text: string): Wanted<WantedLock> {
  const [, named = '', mode] = /^(.*?)(?::(shared|exclusive))?$/s.exec(text) ?? [];
  const meant = mode === undefined ? modeMeant(named) : undefined;
  if (meant !== undefined) {
    return refused(`${shown(text)}: did you mean ${meant}? A lock of that very name is ${text}:exclusive`);
  }
  const lock = plainName('lock', named);
  const problem = nameProblem(lock, 'lock');
  if (problem !== undefined) return refused(`${shown(text)}: ${problem}`);
  return { ok: true, want: mode === 'shared' ? { lock, mode } : { lock } };
}

/**
 * `NAME[=WEIGHT][/CAPACITY]`. The last `=` begins the weight and a last `/` with digits the capacity, so that a name may
 * contain both. What looks like a weight or a capacity in another order is a mistake: as a name it would be a semaphore
 * that nobody else uses.
 */
export function wantedSlots(text: string): Wanted<WantedSlots> {
  const [, before = '', slots] = /^(.*?)(?:\/(\d+))?$/s.exec(text) ?? [];
  const equals = before.lastIndexOf('=');
  const semaphore = plainName('semaphore', equals < 0 ? before : before.slice(0, equals));
  if (slots === undefined && equals >= 0 && /\/\d+$/.test(semaphore)) return misplaced(text, 'the capacity comes last');
  if (slots !== undefined && equals < 0 && /:\d+$/.test(semaphore)) return misplaced(text, 'a weight begins with =');
  if (slots === undefined && equals < 0 && semaphore.includes('/')) {
    const last = semaphore.slice(semaphore.lastIndexOf('/') + 1);
    return misplaced(text, `${shown(last)} is no capacity; with a slash in its name, say the weight too`);
  }
  const problem = nameProblem(semaphore, 'semaphore');
  if (problem !== undefined) return refused(`${shown(text)}: ${problem}`);
  const weight = equals < 0 ? undefined : before.slice(equals + 1);
  const wrong = Object.entries({ weight, capacity: slots }).find(
    ([, digits]) => digits !== undefined && countOf(digits) === undefined,
  );
  if (wrong !== undefined) {
    return refused(
      `${shown(text)}: the ${wrong[0]} is ${shown(wrong[1])}; expected NAME, NAME=WEIGHT, NAME/CAPACITY or NAME=WEIGHT/CAPACITY, with whole numbers from 1 up`,
    );
  }
  return {
    ok: true,
    want: {
      semaphore,
      ...(weight !== undefined && { weight: Number(weight) }),
      ...(slots !== undefined && { capacity: Number(slots) }),
    },
  };
}

function countOf(digits: string): number | undefined {
  const count = /^\d+$/.test(digits) ? Number(digits) : Number.NaN;
  return Number.isSafeInteger(count) && count > 0 ? count : undefined;
}

function misplaced(text: string, why: string): { readonly ok: false; readonly problem: string } {
  return refused(`${shown(text)}: ${why}; expected NAME[=WEIGHT][/CAPACITY]`);
}

function refused(problem: string): { readonly ok: false; readonly problem: string } {
  return { ok: false, problem };
}

// A name that ends with what was surely meant as a mode: taken as a name, it would be a lock that nobody else uses.

const MODE_WORDS: Readonly<Record<string, string>> = {
  read: 'shared',
  reader: 'shared',
  ro: 'shared',
  write: 'exclusive',
  writer: 'exclusive',
  rw: 'exclusive',
};
const MODES = ['shared', 'exclusive'];

/** `cfg:shared` of `cfg:share`; undefined where the last word is just part of the name. */
function modeMeant(name: string): string | undefined {
  const colon = name.lastIndexOf(':');
  if (colon < 0) return undefined;
  const word = name.slice(colon + 1).toLowerCase();
  const known = Object.hasOwn(MODE_WORDS, word) ? MODE_WORDS[word] : undefined;
  const mode = known ?? MODES.find((one) => distance(word, one, 2) <= 2);
  return mode === undefined ? undefined : `${name.slice(0, colon)}:${mode}`;
}
