/** Turns what a terminal sends into keys: `j`, `enter`, `up`, `ctrl-c`. */

/** Each key, and what terminals send for it after an escape. */
const SENT: Readonly<Record<string, readonly string[]>> = {
  ...{ up: ['[A', 'OA'], down: ['[B', 'OB'], right: ['[C', 'OC'], left: ['[D', 'OD'] },
  ...{ home: ['[H', 'OH', '[1~', '[7~'], end: ['[F', 'OF', '[4~', '[8~'], 'page-up': ['[5~'], 'page-down': ['[6~'] },
  ...{ delete: ['[3~'], 'back-tab': ['[Z'] },
};
const SEQUENCES = new Map(Object.entries(SENT).flatMap(([key, all]) => all.map((sent) => [sent, key] as const)));

const CONTROLS: Readonly<Record<string, string>> = {
  '\r': 'enter',
  '\n': 'enter',
  '\t': 'tab',
  '\x7f': 'backspace',
  '\b': 'backspace',
  '\x03': 'ctrl-c',
  '\x04': 'page-down',
  '\x06': 'page-down',
  '\x02': 'page-up',
  '\x15': 'ctrl-u',
  '\x17': 'ctrl-w',
  '\x0c': 'ctrl-l',
  '\x1a': 'ctrl-z',
  '\x1b': 'escape',
};

/** An escape sequence, or one character. A sequence that is not known is one key, which means nothing. */
const KEY = /\x1b(\[[0-?]*[ -/]*[@-~]|O[A-Za-z])|[^]/gu;

/** `text`: what came in one piece. An escape alone is the key; one that begins a sequence comes together with it. */
export function keysIn(text: string): readonly string[] {
  return [...text.matchAll(KEY)].map(([whole, sequence]) => {
    if (sequence !== undefined) return SEQUENCES.get(sequence) ?? 'unknown';
    return CONTROLS[whole] ?? (/[\p{Cc}\p{Cf}\p{Cs}]/u.test(whole) ? 'unknown' : whole);
  });
}
