/**
 * Job control: a command that stops itself, and only itself, stops us too. The shell waits for us and not for it, and
 * would sit there for ever. When the shell goes on with the job, it wakes both.
 */
import { readStat } from '../../host/index.ts';
import type { GatedChild } from './gated-child.ts';

/** Answers how to end it. */
export function stopWithChild({ pid }: GatedChild): () => void {
  const looked = (): void => {
    if (readStat(pid)?.state === 'T') process.kill(process.pid, 'SIGSTOP');
  };
  process.on('SIGCHLD', looked);
  return () => void process.removeListener('SIGCHLD', looked);
}
