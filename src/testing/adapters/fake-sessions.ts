/** Sessions without tmux. */
import type { Sessions } from '../../adapters/index.ts';
import { asTmuxNamesIt } from '../../adapters/sessions.ts';
import type { InputValues } from '../../core/index.ts';
import { Fake } from './fake.ts';

/** Terminal sessions that exist only in a test. */
export class FakeSessions extends Fake implements Sessions {
  readonly #names = new Set<string>();

  /** Begins with these sessions alive. */
  constructor(names: readonly string[] = []) {
    super();
    for (const name of names) this.start(name);
  }

  /** Starts a session. */
  start(name: string): void {
    this.#names.add(asTmuxNamesIt(name));
  }

  /** Ends a session. */
  end(name: string): void {
    this.#names.delete(asTmuxNamesIt(name));
  }

  /** Whether a session of this name is alive. */
  session(name: string, signal?: AbortSignal): Promise<InputValues['session']> {
    return this.answer(['session', name], signal, () => ({ alive: this.#names.has(asTmuxNamesIt(name)) }));
  }
}
