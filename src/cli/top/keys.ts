/** Turns what a terminal sends into keys: `j`, `enter`, `up`, `ctrl-c`. */

const SEQUENCES: Readonly<Record<string, string>> = {
  '[A': 'up',
  '[B': 'down',
  '[C': 'right',
  '[D': 'left',
  OA: 'up',
  OB: 'down',
  OC: 'right',
  OD: 'left',
  '[H': 'home',
  '[F': 'end',
  OH: 'home',
  OF: 'end',
  '[1~': 'home',
  '[4~': 'end',
  '[7~': 'home',
  '[8~': 'end',
  '[5~': 'page-up',
  '[6~': 'page-down',
  '[3~': 'delete',
  '[Z': 'back-tab',
};

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
    if (sequence !== undefined) return SEQUENCES[sequence] ?? 'unknown';
    return CONTROLS[whole] ?? (/[\p{Cc}\p{Cf}\p{Cs}]/u.test(whole) ? 'unknown' : whole);
  });
}
