import type { Token } from '../../core/index.ts';
import { always, type Operation, type Revision } from '../../store/index.ts';
import { encode, HORIZON } from '../layout.ts';
import type { Runtime } from '../runtime.ts';

/**
 * Up to where tokens may be forgotten: the revision of the last write of its key. `commit.ts` says what rests on it. It is
 * written once per sweep, because a process that has not seen it yet loses one race when it makes a record.
 */
export class Horizon {
  readonly #runtime: Runtime;
  #revision: Revision | undefined;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  async isPast(token: Token): Promise<boolean> {
    return token < (this.#revision ?? (await this.raise()));
  }

  async raise(): Promise<Revision> {
    const { store, stopped } = this.#runtime;
    const put: Operation = { do: 'put', key: HORIZON, value: encode({}) };
    const { revision } = await store.transaction(always([put]), stopped);
    this.#runtime.saw(revision);
    this.#revision = revision;
    return revision;
  }
}
