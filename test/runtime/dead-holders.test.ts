import { describe, expect, it } from 'vitest';
import {
  freeLock,
  type Lock,
  type LockCommand,
  type LockMode,
  lockTransition,
  type Moment,
} from '../../src/core/index.ts';
import { decide, type Decision } from '../../src/runtime/write/decision.ts';
import { lockMachine } from '../../src/core/machines.ts';
import { BackgroundCommand } from '../../src/runtime/write/pending-command.ts';

const at: Moment = { now: 0, revision: 10, gone: () => false };

/** What a write that decides this would have to compare: the leases of those it grants something to. */
function decided(lock: Lock, ...commands: readonly LockCommand[]): Decision<Lock> {
  return decide(
    lockMachine,
    lock,
    commands.map((command) => new BackgroundCommand(command)),
    at,
    'here',
    false,
  );
}

function asked(id: string, holder: string, lease: string, mode: LockMode): LockCommand {
  return { kind: 'acquire', id, holder, lease, priority: 0, mode, wait: true };
}

function held(...holds: readonly (readonly [id: string, holder: string, lease: string])[]): Lock {
  return holds.reduce(
    (lock, [id, holder, lease]) => lockTransition(lock, asked(id, holder, lease, 'shared'), at).state,
    freeLock,
  );
}

describe('a reader whose session has ended does not become the writer', () => {
  it('when it asked while another reader was there, and that one leaves in the same write', () => {
    const lock = held(['one', 'ann', 'here'], ['two', 'bob', 'here']);
    const [first, second] = lock.record.holds;
    const upgrade: LockCommand = {
      kind: 'upgrade',
      holder: 'bob',
      id: 'two',
      token: second?.token as number,
      request: 'three',
      lease: 'here',
      wait: true,
    };
    const draft = decided(lock, upgrade, { kind: 'release', holder: 'ann', id: 'one', token: first?.token as number });
    expect(draft.state.record.holds).toMatchObject([{ id: 'two', mode: 'exclusive' }]);
    // Newcomers are granted only while their session exists.
    expect(draft.newcomers).toHaveLength(1);
    expect(draft.kept).toMatchObject([{ id: 'two', lease: 'here' }]);
  });

  it('because its holder asks to write in another session', () => {
    const draft = decided(held(['one', 'ann', 'elsewhere']), asked('two', 'ann', 'here', 'exclusive'));
    expect(draft.state.record.holds).toMatchObject([{ id: 'one', mode: 'exclusive', lease: 'elsewhere' }]);
    expect(draft.kept).toMatchObject([{ id: 'one', lease: 'elsewhere' }]);
  });
});
