/** Guards over HTTP: whether a condition holds now, or does so before long. */
import { z } from 'zod';
import { given } from '../../core/given.ts';
import {
  allows,
  conditionProblem,
  type Condition,
  type Explanation,
  type InputKind,
  polledInputs,
  renderExplanation,
  requiredInputs,
} from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { DEFAULT_POLL_MS, SHORTEST_POLL_AT_SERVER_MS } from '../../runtime/guards/executor.ts';
import type { GuardWaitOptions } from '../../runtime/guards/wait.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import { refuseUnlessAdministrator } from '../acting.ts';
import { type Caller, ok, type Operation, operation } from '../operation.ts';
import { Problem } from '../problem.ts';
import { answer, anyObject, holder, maybe, waitMs } from '../schemas.ts';

/** Kinds that look only at the store, so every role may ask. The others look at the server's machine. */
const OF_THE_STORE: readonly InputKind[] = ['lock', 'semaphore', 'pipeline', 'task', 'member'];
/** For administrators: with a pattern, a caller could find out the text of any file that the server can read, letter by letter. */
const OF_FILES: readonly InputKind[] = ['file', 'fileText', 'worktree'];

const SHORTEST_POLL_MS = 100;

export const guards: readonly Operation[] = [
  operation({
    ...{ id: 'guard.check', method: 'post', path: '/v1/guards/check', tag: 'guards', role: 'viewer' },
    summary: 'Check a condition',
    description:
      'Whether it holds now, and if not, why. Any role may ask about the store; asking about branches, issues and sessions on the ' +
      'server needs a worker, about its files an administrator, and a `command` needs an administrator and `serve --allow-commands`. ' +
      'With `waitMs` the server answers as soon as the condition holds or never can, and when that time is over: then ask again. A ' +
      'token may wait for 500 guards at once.',
    body: z.strictObject({
      condition: z.looseObject({}).describe('A one-key object, such as `{"lockFree": "main"}`.'),
      own: z.array(holder).max(100).optional().describe('Holders whose holds do not count.'),
      waitMs: waitMs.optional(),
      pollMs: maybe(
        z.number().min(SHORTEST_POLL_MS),
        'While it waits: how often to check what sends no events, such as files; 2 s if not given, and never more often than every second.',
      ),
      known: maybe(z.string(), 'While it waits: the `text` that you have; it answers as soon as there is another one.'),
    }),
    answers: answer('The verdict, and the tree with a verdict and a reason on every leaf.', {
      passed: z.boolean(),
      verdict: anyObject,
      explanation: anyObject,
      text: z.string(),
    }),
    problems: ['commands-off', 'too-many-waits'],
    async run(call) {
      const { box, caller, allowsCommands, body } = call;
      const condition = body.condition as unknown as Condition;
      const problem = conditionProblem(condition);
      if (problem !== undefined) throw new Failure('invalid', problem);
      refuseUnlessAllowed(caller, condition, allowsCommands);
      const { own, waitMs: longest = 0 } = body;
      const now = (): Promise<Explanation> =>
        box.explain(condition, {}, { signal: call.signal, isQuiet: true, commandsLast: true, ...given({ own }) });
      const explanation = await (longest === 0
        ? now()
        : awaited(box, condition, { ...body, longest, signal: call.countedSignal() }));
      const { verdict } = explanation;
      const text = textOf(explanation);
      return ok({ passed: verdict.kind === 'passed', verdict, explanation, text });
    },
  }),
];

interface Wait {
  readonly own?: readonly string[] | undefined;
  readonly pollMs?: number | undefined;
  readonly known?: string | undefined;
  readonly longest: number;
  readonly signal: AbortSignal;
}

/** The last look, when the condition holds, can never hold, or looks other than `known`; or when the wait is over. */
async function awaited(
  box: Signalbox,
  condition: Condition,
  { own, pollMs: asked = DEFAULT_POLL_MS, known, longest: timeoutMs, signal }: Wait,
): Promise<Explanation> {
  const isPolled = polledInputs(condition).length > 0;
  // Each look at the machine may read files or start a program.
  const pollMs = isPolled ? Math.max(asked, SHORTEST_POLL_AT_SERVER_MS) : asked;
  const options = { pollMs, ...given({ own }) };
  const enough = new AbortController();
  let last: Explanation | undefined;
  const onVerdict: GuardWaitOptions['onVerdict'] = ({ explanation }) => {
    last = explanation;
    if (known !== undefined && textOf(explanation) !== known) enough.abort();
  };
  const over = AbortSignal.any([signal, enough.signal]);
  await box.guards.wait(condition, { ...options, timeoutMs, signal: over, onVerdict }).catch((error: unknown) => {
    // A server that stops answers with what it saw: its client asks another one.
    if (last === undefined || !over.aborted) throw error;
  });
  return last as unknown as Explanation;
}

export function commandsOff(): Problem {
  return new Problem('commands-off', 'this server runs no commands; start it with serve --allow-commands');
}

function textOf(explanation: Explanation): string {
  return renderExplanation(explanation).join('\n');
}

export function refuseUnlessAllowed(caller: Caller, condition: Condition, allowsCommands: boolean): void {
  const kinds = new Set(requiredInputs(condition).map(({ kind }) => kind));
  if (kinds.has('command')) {
    refuseUnlessAdministrator(caller, 'a command in a condition');
    if (!allowsCommands) throw commandsOff();
  }
  if (OF_FILES.some((kind) => kinds.has(kind))) refuseUnlessAdministrator(caller, 'a condition about files');
  const isOfMachine = [...kinds].some((kind) => !OF_THE_STORE.includes(kind));
  if (isOfMachine && !allows(caller.role, 'worker')) {
    const what = 'a condition about the machine of the server needs the role worker';
    throw new Problem('wrong-role', what, { needed: 'worker', role: caller.role });
  }
}
