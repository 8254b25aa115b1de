/**
 * Guards the callbacks of a caller that drives a pipeline. A callback that throws must not stop the drive: a phase that had
 * begun would need a person. The pipeline goes on, and the caller gets the first error once it is over.
 */
import type { DriveOptions } from './terms.ts';

type Told = Pick<DriveOptions, 'onChange' | 'onOutput' | 'onMessage'>;

export class Callbacks {
  readonly #told: Told;
  #thrown: { readonly error: unknown } | undefined;

  constructor({ onChange, onOutput, onMessage }: Told) {
    this.#told = {
      ...(onChange !== undefined && { onChange: this.#guarded(onChange) }),
      ...(onOutput !== undefined && { onOutput: this.#guarded(onOutput) }),
      ...(onMessage !== undefined && { onMessage: this.#guarded(onMessage) }),
    };
  }

  /** The same options, with callbacks that never throw. */
  within<Options extends Told>(options: Options): Options {
    return { ...options, ...this.#told };
  }

  rethrow(): void {
    if (this.#thrown !== undefined) throw this.#thrown.error;
  }

  #guarded<Args extends readonly unknown[]>(callback: (...args: Args) => void): (...args: Args) => void {
    return (...args) => {
      try {
        callback(...args);
      } catch (error) {
        this.#thrown ??= { error };
      }
    };
  }
}
