/** Names as they are printed are names as they are accepted: `lock/main` is the lock `main`. */
import { plainName } from '../core/index.ts';

export const lockName = (text: string): string => plainName('lock', text);
export const semaphoreName = (text: string): string => plainName('semaphore', text);
