/** Places in a text, as editors count them: lines and columns from 1. */

export interface Place {
  readonly line: number;
  /** In UTF-16 units. */
  readonly column: number;
}

export interface PlacedProblem extends Place {
  /** What is wrong, and what is accepted. */
  readonly message: string;
}

/** Finds the line and column of an offset into the text. */
export class Lines {
  readonly #starts: number[] = [0];

  constructor(text: string) {
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) this.#starts.push(at + 1);
  }

  placeOf(offset: number): Place {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.#starts[middle] as number) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (this.#starts[low] as number) + 1 };
  }
}

export function inOrder(problems: readonly PlacedProblem[]): readonly PlacedProblem[] {
  return problems.toSorted((one, other) => one.line - other.line || one.column - other.column);
}
