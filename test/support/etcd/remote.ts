/** A real process on a store, told by messages what to do, that can be stopped and killed. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('../../pitfalls/programs/remote.mjs', import.meta.url));

export interface Said {
  readonly kind: 'ready' | 'waiting' | 'done' | 'failed' | 'lost';
  readonly do?: string;
  readonly name?: string;
  readonly token?: number;
  readonly refusal?: string;
  readonly released?: string;
  readonly isValid?: boolean;
  readonly why?: string;
}

export class RemoteProcess {
  readonly #child: ChildProcess;
  readonly #said: Said[] = [];
  readonly #listeners = new Set<() => void>();
  #gone = false;

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.on('message', (said) => this.#hear(() => this.#said.push(said as Said)));
    child.once('exit', () => this.#hear(() => (this.#gone = true)));
  }

  static async start(url: string, ttlMs: number, log: string): Promise<RemoteProcess> {
    const remote = new RemoteProcess(fork(PROGRAM, [url, String(ttlMs), log], { execArgv: [] }));
    await remote.said({ kind: 'ready' });
    return remote;
  }

  tell(order: { readonly do: 'acquire' | 'release' | 'block'; readonly name: string } & Record<string, unknown>): void {
    this.#child.send(order);
  }

  /** Resolves with the first thing it says, or has said, that is like this. */
  async said(wanted: Partial<Said>): Promise<Said> {
    for (;;) {
      const found = this.#said.find((said) =>
        Object.entries(wanted).every(([key, value]) => said[key as keyof Said] === value),
      );
      if (found !== undefined) return found;
      if (this.#gone)
        throw new Error(`it ended without saying ${JSON.stringify(wanted)}: ${JSON.stringify(this.#said)}`);
      await new Promise<void>((resolve) => this.#listeners.add(resolve));
    }
  }

  /** The token it got. */
  async acquired(name: string): Promise<number> {
    return (await this.said({ kind: 'done', do: 'acquire', name })).token ?? 0;
  }

  pause(): void {
    this.#child.kill('SIGSTOP');
  }

  resume(): void {
    this.#child.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    if (this.#gone) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }

  #hear(note: () => void): void {
    note();
    for (const listener of [...this.#listeners]) {
      this.#listeners.delete(listener);
      listener();
    }
  }
}
