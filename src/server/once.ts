/** Carries out a request with an Idempotency-Key once, although it is sent twice; two servers on one store agree. */
import { createHash } from 'node:crypto';
import type { Json } from '../core/index.ts';
import { type KeptAnswer, refuseUnlessKey } from '../runtime/access/once.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { Caller } from './operation.ts';
import { type Answer, answerOf, isPassing, Problem } from './problem.ts';

/** Longer than any request takes. */
const RUNNING_MS = 90_000;
const KEPT_MS = 24 * 3_600_000;
/** Of what a token makes harmless to repeat, and there is much of: longer than any client repeats a request. */
const KEPT_OF_HOLDS_MS = 120_000;
/** Characters. The data of any task fits, and every engine takes a value of this size. */
const MOST_KEPT = 512 * 1024;

export const KEY_HEADER = 'Idempotency-Key';

interface Keyed {
  readonly key: string;
  readonly caller: Caller;
  /** The method, the path with its parameters, and the body. */
  readonly content: string;
  /** It ends or changes a hold, which its token names. */
  readonly isOfHold: boolean;
}

export async function onceOnly(
  box: Signalbox,
  { key, caller, content, isOfHold }: Keyed,
  run: () => Promise<Answer>,
): Promise<Answer> {
  refuseUnlessKey(key);
  // Each token has keys of its own: nobody learns of the requests of others.
  const begun = await box.once.begin(hash(`${caller.id}\n${key}`), hash(content), RUNNING_MS);
  switch (begun.kind) {
    case 'other-content':
      throw new Problem('key-reused', `${KEY_HEADER} was used for another request; use a new one for each`);
    case 'running':
      throw new Problem(
        'key-in-use',
        `a request with this ${KEY_HEADER} is under way; ask again`,
        {},
        { 'Retry-After': '1' },
      );
    case 'answered':
      return { ...begun.answer, headers: { 'Idempotent-Replayed': 'true' } };
    case 'first':
  }
  const answer = await run().catch(answerOf);
  // What did not reach the store may be sent again. What may have reached it too: the repeat finds what became of it.
  if (isPassing(answer.status)) await begun.failed();
  else await begun.done(keptOf(answer), keptMs(answer, isOfHold)).catch(() => undefined);
  return answer;
}

/** A repeat must not be carried out again, even if there is no room for what it would be answered. */
function keptOf(answer: Answer): KeptAnswer {
  const kept = { status: answer.status, body: answer.body as Json };
  if (JSON.stringify(kept).length <= MOST_KEPT) return kept;
  const { status, body } = answerOf(
    new Problem('answer-not-kept', 'it was carried out, but its answer was too large to be kept for a repeat; look'),
  );
  return { status, body: body as Json };
}

/** The answer that gives a hold or a claim is true for as long as its lease: afterwards it may be another's. */
function keptMs({ body }: Answer, isOfHold: boolean): number {
  const { ttlMs } = Object(body) as { readonly ttlMs?: unknown };
  if (typeof ttlMs === 'number') return Math.min(ttlMs, KEPT_MS);
  return isOfHold ? KEPT_OF_HOLDS_MS : KEPT_MS;
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
