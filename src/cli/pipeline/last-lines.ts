/** Keeps the last lines of a stream of text in little memory. */
const MOST_LINES = 20;
const LONGEST_LINE = 1_000;

export class LastLines {
  #lines: string[] = [];
  #open = '';

  add(text: string): void {
    const parts = (this.#open + text).split('\n');
    const open = parts.pop() ?? '';
    // The next text overwrites this line.
    this.#open = seen(open) + (open.endsWith('\r') ? '\r' : '');
    this.#lines = [...this.#lines, ...parts.slice(-MOST_LINES).map(seen)].slice(-MOST_LINES);
  }

  clear(): void {
    this.#lines = [];
    this.#open = '';
  }

  get all(): readonly string[] {
    return this.#open === '' ? this.#lines : [...this.#lines, seen(this.#open)];
  }
}

/** The last version of a line that was overwritten, such as a progress bar. */
function seen(line: string): string {
  const plain = line.endsWith('\r') ? line.slice(0, -1) : line;
  return plain.slice(plain.lastIndexOf('\r') + 1).slice(-LONGEST_LINE);
}
