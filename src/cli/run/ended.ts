/** Ends this process as its command ended. */
import { type Ended, exitCodeOf } from '../../host/index.ts';
import { CliExit } from '../exit-code.ts';

/** `interrupted`: by Ctrl-C on our terminal. */
export type RunEnded = Ended & { readonly interrupted?: boolean };

/**
 * By the exit code that shells have for it; only after Ctrl-C by the signal itself. A shell that runs a script looks
 * whether its command died of it, and else goes on with the script.
 */
export function endLike(ended: RunEnded): void {
  if (ended.interrupted === true) {
    process.removeAllListeners('SIGINT');
    process.kill(process.pid, 'SIGINT');
    // Reached by the first process of a container alone: the kernel spares pid 1 every signal that it does not handle.
  }
  const code = exitCodeOf(ended);
  if (code !== 0) throw new CliExit(code, '');
}
