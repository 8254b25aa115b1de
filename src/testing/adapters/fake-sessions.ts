/** Sessions without tmux. */
import type { Sessions } from '../../adapters/index.ts';
import { asTmuxNamesIt } from '../../adapters/sessions.ts';
import type { InputValues } from '../../core/index.ts';
import { Fake } from './fake.ts';

export class FakeSessions extends Fake implements Sessions {
  readonly #names = new Set<string>();

  constructor(names: readonly string[] = []) {
    super();
    for (const name of names) this.start(name);
  }

  start(name: string): void {
    this.#names.add(asTmuxNamesIt(name));
  }

  end(name: string): void {
    this.#names.delete(asTmuxNamesIt(name));
  }

  session(name: string, signal?: AbortSignal): Promise<InputValues['session']> {
    return this.answer(['session', name], signal, () => ({ alive: this.#names.has(asTmuxNamesIt(name)) }));
  }
}
