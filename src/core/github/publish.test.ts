import { describe, expect, it } from 'vitest';
import type { Held } from './acquire.ts';
import { publish } from './publish.ts';
import type { Answer, Instant, Procedure, Question } from './question.ts';

const [FROM, TO] = ['a'.repeat(40), 'b'.repeat(40)];
const MAIN = { ref: 'refs/heads/main', from: FROM, to: TO };
const TIMEOUT_MS = 60_000;
const at = (ms: number): Instant => ({ monotonicMs: ms, wallMs: ms });

const HELD: Held = {
  issue: 42,
  tip: 'tip',
  before: [],
  deadline: at(TIMEOUT_MS),
  since: at(0),
  commentAt: at(0),
  record: { ...{ state: 'held', epoch: 1, seq: 0, hold: 'h', nonce: 'n' }, timeout_ms: TIMEOUT_MS } as Held['record'],
};

/** What becomes of it if GitHub answers so; each answer says after how long it came. */
function published(answer: (question: Question) => { readonly value?: unknown; readonly afterMs?: number } | 'lost') {
  const steps: Procedure<ReturnType<typeof publish> extends Procedure<infer Result> ? Result : never> = publish(
    HELD,
    MAIN,
    { nonce: 'next', at: at(0), iso: '' },
  );
  let now = 0;
  let step = steps.next();
  while (step.done !== true) {
    step = steps.next(
      step.value.map((question): Answer<unknown> => {
        const sent = at(now);
        const said = answer(question);
        if (said === 'lost') return { kind: 'unknown', message: 'no answer', sent, at: at((now += 1)) };
        now += said.afterMs ?? 1;
        return { kind: 'ok', value: said.value ?? null, sent, at: at(now) };
      }),
    );
  }
  return step.value;
}

/** The answer to the move gets lost; read afterwards, the branch is at `sha`, and another worker has the lock. */
function withLostAnswer(sha: string) {
  let isSent = false;
  return published((question) => {
    if (question.ask === 'make-commit') return { value: { sha: 'next', dateMs: 0 } };
    if (question.ask === 'move-refs') {
      isSent = true;
      return 'lost';
    }
    if (question.ask !== 'ref') return {};
    const [before, after] = question.ref === MAIN.ref ? [FROM, sha] : [HELD.tip, 'of a thief'];
    return { value: { ref: question.ref, sha: isSent ? after : before } };
  });
}

describe('a branch that has moved is published', () => {
  it('although the answer came too late to keep the lock', () => {
    const outcome = published((question) => {
      if (question.ask === 'ref') return { value: { ref: question.ref, sha: FROM } };
      if (question.ask === 'make-commit') return { value: { sha: 'next', dateMs: 0 } };
      return { afterMs: 2 * TIMEOUT_MS };
    });
    expect(outcome).toMatchObject({ published: { kind: 'published' }, renewed: { kind: 'lost', why: 'expired' } });
  });

  it('although the answer got lost, and another worker has taken the lock since', () => {
    const outcome = withLostAnswer(TO);
    expect(outcome).toMatchObject({ published: { kind: 'published' }, renewed: { kind: 'lost', why: 'taken' } });
  });

  it('and one that another worker kept from moving is not', () => {
    const outcome = withLostAnswer(FROM);
    expect(outcome).toMatchObject({ published: { kind: 'lost' }, renewed: { kind: 'lost', why: 'taken' } });
  });
});
