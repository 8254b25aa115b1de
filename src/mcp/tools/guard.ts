/** guard_check: whether a condition holds, or a wait until it does. Runs no commands. */
import { z } from 'zod';
import { given } from '../../core/given.ts';
import { conditionProblem, type Condition, renderExplanation, requiredInputs } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { refuseForeign } from '../../server/acting.ts';
import { Problem } from '../../server/problem.ts';
import { refuseUnlessAllowed } from '../../server/routes/guards.ts';
import { type GuardPlace, LONGEST_PLACE, placeText } from '../place.ts';
import { calling, type Told, told } from '../result.ts';
import { type Desk, READS, type TaskMade, type Tool, tool, type ToolCall } from '../tool.ts';
import { isCutShort, reporting, waitEnd, waitOf } from '../waiting.ts';
import * as field from './fields.ts';

export const guards: readonly Tool[] = [
  tool({
    name: 'guard_check',
    title: 'Check a condition',
    description:
      'Check whether a condition holds, or wait until it does. One-key objects: {"lockFree":"main"}, {"taskDone":"build"}, ' +
      '{"semaphoreAvailable":{"semaphore":"ci","slots":2}}, {"pipelineComplete":"release"}, {"branchMerged":{"branch":"x","into":"main"}}, ' +
      '{"memberAlive":"db"}, {"all":[…]}, {"any":[…]}, {"not":…}. A lock that is free may be taken a moment later: use acquire to have it.',
    role: 'viewer',
    input: z.strictObject({
      condition: field.jsonObject.describe('A one-key object, such as {"lockFree": "main"}.'),
      waitSeconds: field.waitSeconds.describe('How long to wait until it holds; 0 if not given.'),
      holder: field.holder
        .optional()
        .describe('Your holder, if you have one: your own holds do not count against you.'),
    }),
    annotations: READS,
    run: ({ condition, waitSeconds = 0, holder }, call) =>
      check({ condition: condition as unknown as Condition, holder }, waitSeconds * 1000, call),
  }),
];

interface Asked {
  readonly condition: Condition;
  readonly holder?: string | undefined;
}

async function check(asked: Asked, totalMs: number, call: ToolCall): Promise<Told | TaskMade> {
  const { clock, takesTasks } = call;
  refuseUnlessDeclarative(asked, call);
  const wait = waitOf(call, totalMs);
  const looking = look(asked, wait.blockMs, call);
  const found = await reporting(call, wait.blockMs, () => 'the condition does not hold yet', looking);
  const goesOn = wait.goesOn || (totalMs > 0 && isCutShort(call));
  if (found.status === 'passed' || !goesOn || found.details?.['outlook'] === 'never') return found;
  const since = clock.now();
  const place = { of: 'guard', ...asked, since, until: since + totalMs } as GuardPlace;
  if (takesTasks && placeText(place).length < LONGEST_PLACE) return { task: place, message: found.message };
  return {
    ...found,
    next: `Go on waiting: call ${calling('guard_check', { ...asked, waitSeconds: totalMs / 1000 })}`,
  };
}

/** The same for a polled task; checks the content of its id like a new request. */
export async function checkPlace(place: GuardPlace, desk: Desk, signal: AbortSignal): Promise<Told> {
  refuseUnlessDeclarative(place, desk);
  return look(place, 0, { ...desk, signal });
}

function refuseUnlessDeclarative({ condition, holder }: Asked, { caller }: Pick<Desk, 'caller'>): void {
  const problem = conditionProblem(condition);
  if (problem !== undefined) throw new Failure('invalid', problem);
  if (requiredInputs(condition).some(({ kind }) => kind === 'command')) {
    const what = 'a condition over MCP runs no commands; run the command yourself and look at its answer';
    throw new Problem('commands-off', what);
  }
  refuseUnlessAllowed(caller, condition, false);
  if (holder !== undefined) refuseForeign(caller, holder);
}

async function look(
  { condition, holder }: Asked,
  waitMs: number,
  { box, signal, stopping }: Pick<ToolCall, 'box' | 'signal' | 'stopping'>,
): Promise<Told> {
  const own = given({ own: holder });
  if (waitMs > 0) {
    const waiting = box.guards.wait(condition, { ...own, timeoutMs: waitMs, signal: waitEnd({ signal, stopping }) });
    await waiting.catch((error: unknown) => {
      // A server that stops answers what it sees now.
      if (!isCutShort({ signal, stopping })) throw error;
    });
  }
  const explanation = await box.explain(condition, {}, { ...own, signal, isQuiet: true });
  const { verdict } = explanation;
  const text = renderExplanation(explanation).join('\n');
  const passed = verdict.kind === 'passed';
  if (passed) {
    const next = 'Go on. If you need a lock, take it with acquire: it may be gone in a moment.';
    return told('passed', 'The condition holds now.', next, { passed, explanation: text });
  }
  if (verdict.kind === 'needsInput') {
    const message = `It is unknown whether the condition holds:\n${text}`;
    return told('unknown', message, 'Correct the condition, or ask your user.', { passed, explanation: text });
  }
  const { reasons, outlook } = verdict;
  const next = 'Do something else first, or call guard_check with waitSeconds to wait.';
  const details = { passed, reasons, outlook, explanation: text };
  return told('failed', `The condition does not hold: ${reasons.join('; ')}.`, next, details);
}
