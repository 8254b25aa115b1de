import { Failure, shown } from '../failure.ts';

/** Throws if the value cannot be a limit. */
export function checkLimit(name: string, value: number, least: number, most = Number.MAX_SAFE_INTEGER): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  throw new Failure('invalid', `${name} is ${shown(value)}: a whole number from ${least} to ${most} was expected`);
}
