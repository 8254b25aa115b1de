/** What callers pass who are not held by types: a misspelt option must not be taken for one that was left out. */
import { requestProblem } from '../core/index.ts';
import { Failure, shown } from '../failure.ts';

const REQUEST = [
  'holder',
  'priority',
  'reason',
  'metadata',
  'maxHoldMs',
  'strategy',
  'mode',
  'weight',
  'ttlMs',
  'within',
];
const WAIT = ['waitMs', 'signal', 'onWaiting'];
const STRATEGIES: readonly unknown[] = ['retry', 'fail-fast', 'steal-stale', 'force'];

/** What is wrong with the options of a request; undefined if nothing is. */
export function optionsProblem(options: unknown): string | undefined {
  const shape = shapeProblem(options, [...REQUEST, ...WAIT]);
  if (shape !== undefined) return shape;
  const { strategy, reason, signal, onWaiting } = options as Readonly<Record<string, unknown>>;
  if (strategy !== undefined && !STRATEGIES.includes(strategy)) {
    return `strategy is ${shown(strategy)}; accepted is ${STRATEGIES.map(shown).join(' or ')}`;
  }
  if (strategy === 'force' && (reason ?? '') === '') return 'strategy is "force", which has to give a reason';
  if (signal !== undefined && !(signal instanceof AbortSignal)) return `signal is ${shown(signal)}, not an AbortSignal`;
  if (onWaiting !== undefined && typeof onWaiting !== 'function') {
    return `onWaiting is ${shown(onWaiting)}, not a function`;
  }
  // A weight that makes no sense is refused as impossible by the machine, like one that is too large.
  return requestProblem({ ...(options as object), weight: undefined });
}

/** Something else than an object of options, or one that nobody knows. */
export function shapeProblem(options: unknown, known: readonly string[]): string | undefined {
  if (typeof options !== 'object' || options === null) return `the options are ${shown(options)}, not an object`;
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  return unknown === undefined ? undefined : `${shown(unknown)} is not an option; there are ${known.join(', ')}`;
}

export function refuseUnlessFunction(what: string, given: unknown): void {
  if (typeof given !== 'function') throw new Failure('invalid', `${what} is ${shown(given)}, not a function`);
}
