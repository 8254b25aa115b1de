// The bad example: assign yourself, look again, and believe in it if nobody else is there. Staleness by the clock of the
// one who looks. This is what most lockers on GitHub Issues do.

import { ask, type Procedure } from '../../../src/core/github/index.ts';
import { TIMEOUT_MS, type Worker } from './world.ts';

export function* assignAndVerify(worker: Worker, issue: number): Procedure<boolean> {
  const first = yield* ask({ ask: 'issue', issue });
  if (first.kind !== 'ok') return false;
  const others = first.value.assignees;
  if (others.length > 0) {
    const comments = yield* ask({ ask: 'comments', issue });
    const last = comments.kind === 'ok' ? comments.value.at(-1) : undefined;
    const claimedMs = Number(/\d{6,}/.exec(last?.body ?? '')?.[0] ?? 0);
    if (worker.instant().wallMs - claimedMs < TIMEOUT_MS) return false;
    for (const login of others) yield* ask({ ask: 'unassign', issue, login });
  }
  yield* ask({ ask: 'assign', issue, login: worker.login });
  yield* ask({ ask: 'comment', issue, body: `claimed by ${worker.name} at ${Math.round(worker.instant().wallMs)}` });
  const again = yield* ask({ ask: 'issue', issue });
  return again.kind === 'ok' && again.value.assignees.length === 1 && again.value.assignees[0] === worker.login;
}
