import { describe, expect, it } from 'vitest';
import { commandsOf, type WitnessedStep } from '../../src/runtime/write/witnessed.ts';

const before = { record: { holds: [] }, waiting: [{ id: 'p.2', holder: 'ci' }] } as unknown as WitnessedStep['before'];

function entered(command: object, step: object): readonly object[] {
  const whole = { events: [], answers: [], losses: [], outcome: { kind: 'settled' }, ...step };
  return commandsOf(
    'lock',
    [{ command, before, step: { state: before, ...whole } } as unknown as WitnessedStep],
    9,
    'P',
  );
}

describe('the entry of a write', () => {
  it('tells the grant of a holder that takes over from an earlier hold of its own from the end of that hold', () => {
    const hold = { id: 'p.2', holder: 'ci', token: 9, mode: 'exclusive' };
    const commands = entered(
      { kind: 'settle' },
      {
        events: [
          { type: 'lock:reclaimed', at: 9, holder: 'ci', token: 1 },
          { type: 'lock:acquired', at: 9, holder: 'ci', token: 9 },
        ],
        answers: [{ id: 'p.2', outcome: { kind: 'reclaimed', hold } }],
        losses: [{ hold: { ...hold, token: 1 }, why: 'reclaimed' }],
      },
    );
    expect(commands).toMatchObject([
      { actor: 'P', events: ['lock:reclaimed'], detail: { lost: [{ holder: 'ci', token: 1 }] } },
      { actor: 'ci', events: ['lock:acquired'], detail: { token: 9 } },
    ]);
  });

  it('names the holds that went stale: the process that noticed it is none of them', () => {
    const stale = { type: 'lock:stale', at: 9, holder: 'ci', token: 7 };
    expect(entered({ kind: 'tick' }, { events: [stale] })).toMatchObject([
      { actor: 'P', events: ['lock:stale'], detail: { stale: [{ holder: 'ci', token: 7 }] } },
    ]);
  });
});
