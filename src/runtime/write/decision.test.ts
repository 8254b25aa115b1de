import { expect, it } from 'vitest';
import type { LockCommand, Moment } from '../../core/index.ts';
import { decide } from './decision.ts';
import { lockMachine } from '../../core/machines.ts';
import { BackgroundCommand } from './pending-command.ts';

const AT: Moment = { now: 0, revision: 10, gone: () => false };

function decided(state: typeof lockMachine.unused, ...commands: readonly LockCommand[]) {
  const batch = commands.map((command) => new BackgroundCommand(command));
  return { batch, ...decide(lockMachine, state, batch, AT, 'P', false) };
}

const asked = (id: string): LockCommand =>
  ({ kind: 'acquire', id, holder: id, lease: 'P', priority: 0, mode: 'exclusive', wait: true }) as LockCommand;
const released = (id: string): LockCommand => ({ kind: 'release', holder: id, id }) as LockCommand;

it('a request that is sent again in the write that serves it from the queue does not queue once more', () => {
  const { state } = decided(lockMachine.unused, asked('a'), asked('b'), asked('c'));
  expect(state.waiting.map(({ id }) => id)).toEqual(['b', 'c']);
  const { batch, answers, state: after } = decided(state, released('a'), released('b'), asked('b'));
  expect(answers.map(({ id }) => id)).toEqual(['b', 'c']);
  expect(after.waiting).toEqual([]);
  expect(batch[2]?.outcome).toBe(answers[0]?.outcome);
});
