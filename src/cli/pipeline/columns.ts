/** How much room text takes on a terminal, in columns. */

/** East Asian letters and most emoji take two columns. In doubt it counts two: a line too long breaks the picture. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

export function columnsOf(text: string): number {
  let columns = 0;
  for (const letter of text) columns += WIDE.test(letter) ? 2 : 1;
  return columns;
}

/** Shortens text with an ellipsis. */
export function fit(text: string, width: number): string {
  if (columnsOf(text) <= width) return text;
  let columns = 0;
  let kept = '';
  for (const letter of text) {
    columns += WIDE.test(letter) ? 2 : 1;
    if (columns > width - 1) break;
    kept += letter;
  }
  return `${kept}…`;
}

/** Breaks text between words into lines of this width. A space that does not break is an ordinary one in the result. */
export function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ').flatMap((one) => piecesOf(one, width))) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && columnsOf(longer) > width) {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return [...lines, line].map((one) => one.replaceAll('\u00a0', ' '));
}

/** A word that is longer than a line. */
function piecesOf(word: string, width: number): readonly string[] {
  if (columnsOf(word) <= width) return [word];
  const pieces: string[] = [''];
  for (const letter of word) {
    const piece = pieces.at(-1) as string;
    if (columnsOf(piece + letter) > width) pieces.push(letter);
    else pieces[pieces.length - 1] = piece + letter;
  }
  return pieces;
}

/** Removes escape sequences, which move the cursor or change colours. */
export function withoutEscapes(text: string): string {
  return text.replace(
    /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])/g,
    '',
  );
}
