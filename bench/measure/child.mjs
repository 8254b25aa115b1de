/** A process that takes orders, one line of JSON each, and answers each of them by one line: of Node or of anything. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export class Child {
  #process;
  #lines;
  #said = '';

  constructor(program, args) {
    this.#process = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    // Some talk a lot; it is of interest when they fail.
    this.#process.stderr.setEncoding('utf8').on('data', (text) => (this.#said = (this.#said + text).slice(-4000)));
    this.#lines = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
  }

  /** Resolves once it has said that it is ready. */
  static async start(program, args) {
    const child = new Child(program, args);
    await child.#answer();
    return child;
  }

  async ask(order) {
    this.#process.stdin.write(`${JSON.stringify(order)}\n`);
    return this.#answer();
  }

  /** It has nothing more to do, and clears up. */
  async end() {
    if (this.#process.exitCode !== null) return;
    const gone = once(this.#process, 'exit');
    this.#process.stdin.end();
    await gone;
  }

  async #answer() {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`a process of the bench ended: ${this.#process.spawnargs.join(' ')}\n${this.#said}`);
    return JSON.parse(value);
  }
}
