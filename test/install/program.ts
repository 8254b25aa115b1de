// A program of a user, in strict TypeScript: it is only checked.
import { Failure, type Hold, NotAcquired, open, type Signalbox } from 'signalbox';
import { connect, type RemoteLockHold } from 'signalbox/client';
import { durationMs } from 'signalbox/core';
import { openEmbedded, type Store } from 'signalbox/store';
import { TestClock } from 'signalbox/testing';

export async function deploy(box: Signalbox): Promise<number> {
  try {
    return await box.lock('deploy').run((hold: Hold) => hold.token, { waitMs: 1000 });
  } catch (error) {
    if (error instanceof NotAcquired) return error.refusal.kind.length;
    throw Failure.is(error, 'unavailable') ? new Error(error.message) : error;
  }
}

export async function coordinate(): Promise<void> {
  await using box = await open('memory:', { clock: new TestClock() });
  const store: Store = await openEmbedded('store');
  await store.close();
  await deploy(box);
}

export async function deployThere(token: string): Promise<number> {
  await using box = connect('http://127.0.0.1:7300', { token });
  return await box.lock('deploy').run((hold: RemoteLockHold) => hold.token, { waitMs: 1000 });
}

export const minute: number | undefined = durationMs('1m');

/** An interface, as people write them: it has no index signature. */
interface Build {
  readonly commit: string;
  readonly flags?: readonly string[];
}

interface Built {
  readonly artifact: string;
}

/** What a try answers is told apart by `ok`, and then by `kind`. */
export async function results(box: Signalbox): Promise<string> {
  const attempt = await box.lock('deploy').tryAcquire({ holder: 'worker:1' });
  if (!attempt.ok) {
    // @ts-expect-error There is no hold without `ok`.
    void attempt.hold;
    return attempt.kind === 'busy' ? attempt.holders.map(({ holder }) => holder).join() : attempt.kind;
  }
  const mode: 'exclusive' | 'shared' = attempt.hold.mode;
  await attempt.hold.release();
  const slots = await box.semaphore('api', { capacity: 3 }).tryAcquire({ weight: 2 });
  const both = await box.tryAcquireAll([{ lock: 'a' }, { semaphore: 'api' }]);
  // @ts-expect-error The second argument is an object.
  void (() => box.semaphore('api', 3));
  return `${mode} ${slots.ok ? slots.hold.slots.length : slots.kind} ${both.ok ? both.holds.resource : both.refusals.length}`;
}

/** The type of an event tells which fields it has. */
export async function events(box: Signalbox): Promise<number> {
  let tokens = 0;
  await box.on('lock:acquired', (event) => {
    if (event.type === 'resync') return;
    tokens += event.token;
    // @ts-expect-error Only the events of semaphores have slots.
    void event.slots;
  });
  for await (const event of box.events()) {
    if (event.type === 'lock:forced') return event.by.length + event.reason.length;
    if (event.type === 'semaphore:resized') return event.capacity - event.from;
    if (event.type === 'task:completed') return event.token ?? 0;
    if (event.type === 'pipeline:blocked') return event.reasons.length;
    if (event.type === 'resync') return tokens;
  }
  return tokens;
}

/** Tasks and metadata have the types that the program gives them. */
export async function typed(box: Signalbox): Promise<string> {
  await box.tasks.publish<Build>('build-7', { commit: '1a2b3c' });
  // @ts-expect-error JSON has no functions.
  void (() => box.tasks.publish('build-8', { commit: () => '1a2b3c' }));
  const claim = await box.tasks.claim<Build, Built>('build-7');
  const commit: string = claim.data.commit;
  await claim.complete({ artifact: `${commit}.tgz` });
  // @ts-expect-error A result without its artifact.
  void (() => claim.complete({}));
  const task = await box.tasks.show<Build, Built>('build-7');
  const lock = await box.ensureLock<{ readonly ticket: string }>('deploy', { maxHoldMs: 600_000, onStale: 'alert' });
  await lock.run(() => undefined, { metadata: { ticket: 'OPS-7' } });
  // @ts-expect-error Metadata of another type.
  void (() => lock.acquire({ metadata: { tickets: 7 } }));
  const { holders, maxHoldMs } = await lock.inspect();
  return `${task?.result?.artifact ?? ''} ${holders[0]?.metadata?.ticket ?? ''} ${maxHoldMs ?? 0}`;
}

/** A wait that ends in vain says who was in the way. */
export async function whoHadIt(box: Signalbox): Promise<readonly string[]> {
  try {
    await box.lock('deploy').acquire({ waitMs: 1000 });
    return [];
  } catch (error) {
    if (!(error instanceof NotAcquired) || error.refusal.kind !== 'timed-out') throw error;
    return error.refusal.holders.map(({ holder, reason = '' }) => `${holder} ${reason}`);
  }
}
