import { expect, it } from 'vitest';
import { isRepeat } from '../write/recovery.ts';
import type { AnyCommand, PendingCommand } from '../write/pending-command.ts';
import type { ResourceWriter } from '../write/resource-writer.ts';
import { Acquisition } from './acquisition.ts';
import type { Runtime } from '../runtime.ts';

/** A request of a process without a store: what it submits is written down. */
function asked(isForsaken: boolean): { request: Acquisition<never, undefined>; submitted: PendingCommand[] } {
  const submitted: PendingCommand[] = [];
  const writer = {
    resource: 'lock/a',
    submit: (pending: PendingCommand) => void submitted.push(pending),
  } as unknown as ResourceWriter;
  const ignore = (): undefined => undefined;
  const runtime = {
    session: { id: 'p' },
    awaits: ignore,
    awaitsNoMore: ignore,
    answeredParked: () => false,
    wasLostEarly: () => false,
    measures: { of: () => ({ failed: ignore, conflict: ignore, acquired: ignore }) },
    options: { requestTimeoutMs: 2000 },
    lookedAt: 0,
    giveUpAt: () => 2000,
    isForsaken: () => isForsaken,
    grantedTo: ignore,
    later: (_delayMs: number, call: () => void) => call(),
  } as unknown as Runtime;
  const command = { kind: 'acquire', id: 'p.2', holder: 'ann', lease: 'p', priority: 0, wait: true } as AnyCommand;
  const request = new Acquisition<never, undefined>(runtime, writer, command, 'p', undefined, ignore, ignore, ignore);
  request.ask();
  return { request, submitted };
}

it('a request that is answered twice with a hold of no use is asked once more, and not twice in one write', () => {
  const { request, submitted } = asked(true);
  // Once by a letter, and once by the answer to a request that was sent again.
  const answer = { kind: 'extended', hold: { id: 'p.1', holder: 'ann', lease: 'p', token: 7 } };
  request.answered(answer);
  request.answered(answer);
  const written = submitted.filter((pending, place) => !isRepeat(pending, place, submitted));
  expect(written.map(({ command: { id } }) => id)).toEqual(['p.2']);
});

it.each([
  ['refused', { kind: 'deadlock', cycle: [] }],
  [
    'answered with a hold that its holder has',
    { kind: 'extended', hold: { id: 'p.1', holder: 'ann', lease: 'p', token: 7 } },
  ],
])('a request that is %s leaves the queue, if it was sent again and joined it once more', (_how, answer) => {
  const { request, submitted } = asked(false);
  request.answered(answer);
  request.settled({ kind: 'queued' });
  expect(submitted.at(-1)?.command).toMatchObject({ kind: 'cancel', id: 'p.2' });
});

it('a request that was granted before it hears that it waits keeps its grant', () => {
  const { request, submitted } = asked(false);
  request.answered({ kind: 'acquired', hold: { id: 'p.2', holder: 'ann', lease: 'p', token: 7 } });
  request.settled({ kind: 'queued' });
  expect(submitted.map(({ command: { kind } }) => kind)).toEqual(['acquire']);
});
