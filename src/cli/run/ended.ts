/** Ends this process as its command ended. */
import { type Ended, exitCodeOf } from '../../host/index.ts';
import { CliExit, EXIT } from '../exit-code.ts';

/** `interrupted`: by Ctrl-C on our terminal. */
export type RunEnded = Ended & { readonly interrupted?: boolean };

/**
 * A hold was lost, and a signal asked this process to end as well. `lead` would wait for its turn again after a loss; here it ends
 * as by that signal.
 */
export class LostWhileEnding extends CliExit {
  readonly ended: RunEnded;

  constructor({ message, details }: CliExit, ended: RunEnded) {
    super(EXIT.lost, message, details);
    this.ended = ended;
  }
}

/**
 * Uses the exit code that shells use for a signal, and the signal itself only after Ctrl-C: a shell that runs a script
 * stops only if its command died of that signal.
 */
export function endLike(ended: RunEnded): void {
  if (ended.interrupted === true) {
    process.removeAllListeners('SIGINT');
    process.kill(process.pid, 'SIGINT');
    // Only pid 1 of a container gets here: the kernel protects it from every signal that it does not handle.
  }
  const code = exitCodeOf(ended);
  if (code !== 0) throw new CliExit(code, '');
}
