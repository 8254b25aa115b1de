import { expect, it } from 'vitest';
import { isRepeat } from '../write/batch.ts';
import type { AnyCommand, PendingCommand } from '../write/pending-command.ts';
import { Acquisition, type AnyWriter } from './acquisition.ts';
import type { Runtime } from '../runtime.ts';

it('a request that is answered twice with a hold of no use is asked once more, and not twice in one write', () => {
  const submitted: PendingCommand[] = [];
  const writer = {
    resource: 'lock/a',
    submit: (pending: PendingCommand) => void submitted.push(pending),
  } as unknown as AnyWriter;
  const runtime = {
    session: { id: 'p' },
    waiters: { add: () => undefined },
    holdings: { answeredParked: () => false },
    giveUpAt: () => 2000,
    isForsaken: () => true,
    later: (_delayMs: number, call: () => void) => call(),
  } as unknown as Runtime;
  const command = { kind: 'acquire', id: 'p.2', holder: 'ann', lease: 'p', priority: 0, wait: true } as AnyCommand;
  const request = new Acquisition(
    runtime,
    writer,
    command,
    'p',
    undefined,
    () => undefined,
    () => undefined,
    () => undefined,
  );
  request.ask();
  // Once by a letter, and once by the answer to a request that was sent again.
  const answer = { kind: 'extended', hold: { id: 'p.1', holder: 'ann', lease: 'p', token: 7 } };
  request.answered(answer);
  request.answered(answer);
  const written = submitted.filter((pending, place) => !isRepeat(pending, place, submitted));
  expect(written.map(({ command: { id } }) => id)).toEqual(['p.2']);
});
