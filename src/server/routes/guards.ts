/** Guards over HTTP: whether a condition holds now. */
import { z } from 'zod';
import {
  allows,
  conditionProblem,
  type Condition,
  type InputKind,
  renderExplanation,
  requiredInputs,
} from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { refuseUnlessAdministrator } from '../acting.ts';
import { type Caller, ok, type Operation, operation } from '../operation.ts';
import { Problem } from '../problem.ts';
import { anyObject, holder } from '../schemas.ts';

/** Kinds that look only at the store, so every role may ask. The others look at the server's machine. */
const OF_THE_STORE: readonly InputKind[] = ['lock', 'semaphore', 'pipeline', 'task', 'member'];
/** For administrators: with a pattern, a caller could find out the text of any file that the server can read, letter by letter. */
const OF_FILES: readonly InputKind[] = ['file', 'fileText', 'worktree'];

export const guards: readonly Operation[] = [
  operation({
    ...{ id: 'guard.check', method: 'post', path: '/v1/guards/check', tag: 'guards', role: 'viewer' },
    summary: 'Check a condition',
    description:
      'Whether it holds now, and if not, why. Any role may ask about the store; asking about branches, issues and sessions on the ' +
      'server needs a worker, about its files an administrator, and a `command` needs an administrator and `serve --allow-commands`.',
    body: z.strictObject({
      condition: z.looseObject({}).describe('A one-key object, such as `{"lockFree": "main"}`.'),
      own: z.array(holder).max(100).optional().describe('Holders whose holds do not count.'),
    }),
    answers: {
      200: {
        description: 'The verdict, and the tree with a verdict and a reason on every leaf.',
        schema: z.object({ passed: z.boolean(), verdict: anyObject, explanation: anyObject, text: z.string() }),
      },
    },
    problems: ['commands-off'],
    async run({ box, caller, signal, allowsCommands, body }) {
      const condition = body.condition as unknown as Condition;
      const problem = conditionProblem(condition);
      if (problem !== undefined) throw new Failure('invalid', problem);
      refuseUnlessAllowed(caller, condition, allowsCommands);
      const options = { signal, isQuiet: true, commandsLast: true, ...(body.own !== undefined && { own: body.own }) };
      const explanation = await box.explain(condition, {}, options);
      const { verdict } = explanation;
      const text = renderExplanation(explanation).join('\n');
      return ok({ passed: verdict.kind === 'passed', verdict, explanation, text });
    },
  }),
];

export function refuseUnlessAllowed(caller: Caller, condition: Condition, allowsCommands: boolean): void {
  const kinds = new Set(requiredInputs(condition).map(({ kind }) => kind));
  if (kinds.has('command')) {
    refuseUnlessAdministrator(caller, 'a command in a condition');
    if (!allowsCommands) {
      throw new Problem('commands-off', 'this server runs no commands; start it with serve --allow-commands');
    }
  }
  if (OF_FILES.some((kind) => kinds.has(kind))) refuseUnlessAdministrator(caller, 'a condition about files');
  const isOfMachine = [...kinds].some((kind) => !OF_THE_STORE.includes(kind));
  if (isOfMachine && !allows(caller.role, 'worker')) {
    throw new Problem('wrong-role', 'a condition about the machine of the server needs the role worker', {
      ...{ needed: 'worker', role: caller.role },
    });
  }
}
