/** Names as they are printed are names as they are accepted: `lock/main` is the lock `main`. */
import type { ResourceArgument } from './arguments.ts';

const PREFIXES: Readonly<Record<ResourceArgument['kind'], RegExp>> = {
  lock: /^lock\/(?=.)/s,
  semaphore: /^sem(aphore)?\/(?=.)/s,
};

/** A lock that is itself called `lock/main` is reached as `lock/lock/main`, which is how it is printed. */
export function plainName(kind: ResourceArgument['kind'], text: string): string {
  return text.replace(PREFIXES[kind], '');
}

export const lockName = (text: string): string => plainName('lock', text);
export const semaphoreName = (text: string): string => plainName('semaphore', text);
