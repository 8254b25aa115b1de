/** Faults in the order in which a test lists them; every other call passes. */
import type { Changes, KeyRange } from '../store/contract.ts';
import type { After, Before, Call, Decision, Faults } from './faults.ts';

/** The fate of one call, by name, or separately before and after the store. */
export type Fate =
  | 'pass'
  /** Not applied, `unavailable`. */
  | 'fail'
  /** Not applied, `outcome-unknown`. */
  | 'drop-request'
  /** Applied, `outcome-unknown`. */
  | 'drop-answer'
  /** Not applied, never answered. */
  | 'hang'
  /** Applied, never answered. */
  | 'hang-answer'
  | { readonly before?: Decision<Before>; readonly after?: Decision<After> };

const NAMED = {
  pass: {},
  fail: { before: 'fail' },
  'drop-request': { before: 'drop' },
  'drop-answer': { after: 'drop' },
  hang: { before: 'hang' },
  'hang-answer': { after: 'hang' },
} as const satisfies Record<Extract<Fate, string>, Fate>;

/** Faults that a test names one by one. */
export class ScriptedFaults implements Faults {
  /** Every call so far, in order. */
  readonly calls: Call[] = [];
  readonly #next = new Map<Call['kind'], Fate[]>();
  readonly #always = new Map<Call['kind'], Fate>();
  readonly #underWay = new Map<Call, Fate>();
  #cut = new AbortController();
  #held: { readonly released: Promise<void>; readonly release: () => void } | undefined;

  /** The fates of the next calls of this kind, one each. */
  next(kind: Call['kind'], ...fates: readonly Fate[]): void {
    this.#next.set(kind, [...(this.#next.get(kind) ?? []), ...fates]);
  }

  /** The fate of every call of this kind that has none of its own. */
  always(kind: Call['kind'], fate: Fate): void {
    this.#always.set(kind, fate);
  }

  /** Makes all open watches throw `unavailable`; new ones may be opened. */
  cutWatches(): void {
    this.#cut.abort();
    this.#cut = new AbortController();
  }

  /** Holds back every delivery from now on, so that it comes late. */
  holdWatches(): void {
    if (this.#held !== undefined) return;
    let release = (): void => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.#held = { released, release };
  }

  /** Delivers the changes that were held back. */
  releaseWatches(): void {
    this.#held?.release();
    this.#held = undefined;
  }

  /** What happens to a call before it reaches the store. */
  before(call: Call): Decision<Before> {
    this.calls.push(call);
    const fate = this.#next.get(call.kind)?.shift() ?? this.#always.get(call.kind) ?? 'pass';
    this.#underWay.set(call, fate);
    return sides(fate).before ?? 'pass';
  }

  /** What happens to its answer. */
  after(call: Call): Decision<After> {
    const fate = this.#underWay.get(call) ?? 'pass';
    this.#underWay.delete(call);
    return sides(fate).after ?? 'pass';
  }

  /** What happens to a change before it is delivered. */
  delivery(_range: KeyRange, _changes: Changes): Decision<'pass'> {
    return this.#held === undefined ? 'pass' : this.#held.released.then(() => 'pass');
  }

  /** Aborts when the watches are cut. */
  cutSignal(_range: KeyRange): AbortSignal {
    return this.#cut.signal;
  }
}

function sides(fate: Fate): Exclude<Fate, string> {
  return typeof fate === 'string' ? NAMED[fate] : fate;
}
