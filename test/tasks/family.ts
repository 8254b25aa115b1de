/** Real processes that a test talks to, ended with it. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export class Family<Message extends object> {
  readonly #children = new Set<ChildProcess>();
  readonly #hear: (message: Message, from: ChildProcess) => void;

  constructor(hear: (message: Message, from: ChildProcess) => void) {
    this.#hear = hear;
  }

  get size(): number {
    return this.#children.size;
  }

  /** Resolves when it is ready. */
  async start(program: string, ...args: readonly string[]): Promise<ChildProcess> {
    const path = fileURLToPath(new URL(`programs/${program}.mjs`, import.meta.url));
    const child = fork(path, args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], execArgv: [] });
    this.#children.add(child);
    child.on('exit', () => this.#children.delete(child));
    await new Promise<void>((ready, failed) => {
      child.on('message', (message: Message & { readonly ready?: true }) => {
        if (message.ready === true) ready();
        else this.#hear(message, child);
      });
      child.on('exit', (code, signal) => failed(new Error(`${program} ended with ${code ?? signal}`)));
    });
    return child;
  }

  async kill(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  }

  tellAll(message: string): void {
    for (const child of this.#children) if (child.connected) child.send(message);
  }

  async killAll(): Promise<void> {
    await Promise.all([...this.#children].map((child) => this.kill(child)));
  }

  /** Until all have ended by themselves. */
  async ended(): Promise<void> {
    await Promise.all([...this.#children].map((child) => once(child, 'exit')));
  }
}
