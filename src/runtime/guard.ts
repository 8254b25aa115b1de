/** Guards on what the store knows: which locks are held, how many slots are free, which tasks are done. The rest is given by the caller. */
import {
  type Condition,
  evaluate,
  explain,
  type Explanation,
  type Gathered,
  type Inputs,
  requiredInputs,
  type Verdict,
} from '../core/index.ts';
import type { Lock } from './lock.ts';
import type { Semaphore } from './semaphore.ts';
import type { Tasks } from './tasks/tasks.ts';

export interface Looks {
  lock(name: string): Lock;
  semaphore(name: string): Semaphore;
  readonly tasks: Pick<Tasks, 'status'>;
}

/** `given`: what the store cannot tell (branches, files, issues …), as it was gathered. */
export async function checkCondition(looks: Looks, condition: Condition, given: Partial<Inputs>): Promise<Verdict> {
  return evaluate(condition, await inputsFor(looks, condition, given));
}

export async function explainCondition(
  looks: Looks,
  condition: Condition,
  given: Partial<Inputs>,
): Promise<Explanation> {
  return explain(condition, await inputsFor(looks, condition, given));
}

async function inputsFor(looks: Looks, condition: Condition, given: Partial<Inputs>): Promise<Inputs> {
  const gathered: Record<string, unknown> = { ...given };
  await Promise.all(
    requiredInputs(condition).map(async (input) => {
      if (input.key in gathered) return;
      if (input.kind === 'lock') gathered[input.key] = await gather(() => lockInput(looks.lock(input.name)));
      if (input.kind === 'semaphore') {
        gathered[input.key] = await gather(() => semaphoreInput(looks.semaphore(input.name)));
      }
      if (input.kind === 'task') gathered[input.key] = await gather(() => taskInput(looks.tasks, input.id));
    }),
  );
  return gathered as Inputs;
}

/** A look that failed is told as missing input, with the error: it never passes. */
async function gather<T>(look: () => Promise<T>): Promise<{ value: T } | { error: string }> {
  try {
    return { value: await look() };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

async function lockInput(lock: Lock): Promise<ValueOf<'lock'>> {
  const { holders } = await lock.inspect();
  return { holders: holders.map(({ holder, isStale }) => ({ holder, stale: isStale })) };
}

async function semaphoreInput(semaphore: Semaphore): Promise<ValueOf<'semaphore'>> {
  const { capacity, usedSlots } = await semaphore.inspect();
  return capacity === 0 ? null : { capacity, used: usedSlots };
}

async function taskInput(tasks: Looks['tasks'], id: string): Promise<ValueOf<'task'>> {
  const status = await tasks.status(id);
  return status === undefined ? null : { status };
}

type ValueOf<Kind extends 'lock' | 'semaphore' | 'task'> = Extract<Gathered<Kind>, { value: unknown }>['value'];
