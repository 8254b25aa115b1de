/** Carries out a request with an Idempotency-Key once, although it is sent twice; two servers on one store agree. */
import { createHash } from 'node:crypto';
import type { Json } from '../core/index.ts';
import { Failure } from '../failure.ts';
import { type KeptAnswer, refuseUnlessKey } from '../runtime/access/once.ts';
import type { NotAcquired } from '../runtime/refusal.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { Caller } from './operation.ts';
import { type Answer, answerOf, isDoubtful, isPassing, Problem } from './problem.ts';

/** Longer than any request takes. */
const RUNNING_MS = 90_000;
const KEPT_MS = 24 * 3_600_000;
/** For requests that are frequent and harmless to repeat: longer than any client goes on repeating one. */
const KEPT_OF_LEASES_MS = 120_000;
/** In characters. The data of any task fits, and every engine stores a value of this size. */
const MOST_KEPT = 512 * 1024;

const SOON = { 'Retry-After': '1' };

export const KEY_HEADER = 'Idempotency-Key';

/**
 * Operations that grant, extend or end a lease of one holder. Carrying one out twice is harmless: the token names that hold or
 * claim, the incarnation that membership, the same holder gets the same hold again, and a claim that no program knows of expires.
 * Joining is not among them: the second join would find the member of the first, and take it for a stranger.
 */
const OF_LEASES =
  /^(?:(?:lock|semaphore)\.(?:acquire|renew|release|withdraw|upgrade|downgrade)|task\.(?:claim|claim-next|renew)|member\.(?:renew|leave))$/;

const ENDS = /^task\.(?:complete|fail|release)$/;

export function keptText(operation: string): string {
  if (!OF_LEASES.test(operation)) return 'for 24 hours';
  const usual = 'for as long as the lease that it gave, or else for two minutes';
  if (operation.endsWith('.acquire')) return `for 24 hours if it takes a hold away (\`strategy\`), if not, ${usual}`;
  return operation.endsWith('.release') ? `for 24 hours without a token, with one ${usual}` : usual;
}

/**
 * Treats these like a break: taking a hold away twice would take it from the next holder, and a release without a token would end
 * the next hold of the same holder.
 */
function isHarmless(operation: string, body: unknown): boolean {
  const { strategy, token } = Object(body) as { readonly strategy?: unknown; readonly token?: unknown };
  if (!OF_LEASES.test(operation) || strategy === 'force' || strategy === 'steal-stale') return false;
  return !operation.endsWith('.release') || token !== undefined;
}

/**
 * Whether the request ends one claim, which its token names. The task notes which request has ended it, so a repeat is always
 * answered with the outcome of the first attempt, also if the server of that was killed before it could answer.
 */
function endsOneClaim(operation: string, body: unknown): boolean {
  const { token, force } = Object(body) as { readonly token?: unknown; readonly force?: unknown };
  return ENDS.test(operation) && token !== undefined && force !== true;
}

interface Keyed {
  readonly key: string;
  readonly caller: Caller;
  /** The id of the operation. */
  readonly operation: string;
  readonly body: unknown;
  /** Its parameters and its body, as they were sent. */
  readonly content: string;
}

export async function onceOnly(
  box: Signalbox,
  { key, caller, operation, body, content }: Keyed,
  carryOut: (request?: string) => Promise<Answer>,
): Promise<Answer> {
  refuseUnlessKey(key);
  // Keys belong to a token, so that no client learns of another client's requests.
  const isOfLease = isHarmless(operation, body);
  const [at, what] = [hash(`${caller.id}\n${key}`), hash(`${operation}\n${content}`)];
  const isEnd = endsOneClaim(operation, body);
  const isRepeatable = isOfLease || isEnd;
  const run = (): Promise<Answer> => carryOut(isEnd ? hash(`${at}\n${what}`) : undefined);
  const begun = await box.once.begin(at, what, RUNNING_MS, isRepeatable ? undefined : KEPT_MS);
  switch (begun.kind) {
    case 'other-content':
      throw new Problem('key-reused', `${KEY_HEADER} was used for another request; use a new one for each`);
    case 'running':
      // Its server may have been killed, so the worker must not wait for it: the claim would be over by then.
      if (isEnd) return settled(box, at, what, await repeated(run).catch(answerOf));
      throw new Problem('key-in-use', `a request with this ${KEY_HEADER} is under way; ask again`, {}, SOON);
    case 'unknown': {
      const what = `a request with this ${KEY_HEADER} was begun and never answered`;
      throw new Failure('outcome-unknown', `${what}: it may have been done; read the state, and use a new key`);
    }
    case 'answered':
      return { ...begun.answer, headers: { 'Idempotent-Replayed': 'true' } };
    case 'first':
  }
  const answer = await run().catch(answerOf);
  // A client may send a request again if it did nothing, or if repeating it is harmless. Otherwise the repeat only learns that it
  // may have been done.
  if (isPassing(answer.status) && (isRepeatable || !isDoubtful(answer.status))) await begun.failed();
  else await begun.done(keptOf(answer), keptMs(answer, isOfLease)).catch(() => undefined);
  return answer;
}

/** The first attempt may have ended the claim, and a later claim of the task may have hidden that. */
async function repeated(run: () => Promise<Answer>): Promise<Answer> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof Problem && error.code === 'not-owner')) throw error;
    throw new Failure('outcome-unknown', `${error.message}: the first attempt may have ended the claim; read the task`);
  }
}

/** Keeps the answer of a request that another server, or this one, has begun and perhaps never ends. */
async function settled(box: Signalbox, key: string, content: string, answer: Answer): Promise<Answer> {
  if (!isPassing(answer.status)) {
    await box.once.settle(key, content, keptOf(answer), KEPT_MS).catch(() => undefined);
  }
  return answer;
}

/** A request that waits in a queue, as its client names it. */
interface TicketName {
  readonly resource: string;
  readonly holder: string;
  readonly ticket: string;
}

/**
 * Keeps the refusal of a ticket for a while: a process tells it only once, and the client sends the ticket again, perhaps to
 * another server, if it did not get the answer.
 */
export async function keepRefusal(box: Signalbox, of: TicketName, refusal: NotAcquired): Promise<void> {
  const [key, content] = keyOfTicket(of);
  await box.once.settle(key, content, keptOf(answerOf(refusal)), KEPT_OF_LEASES_MS).catch(() => undefined);
}

/** The refusal of a ticket that is no longer in the queue, if it was refused a short while ago. */
export function keptRefusal(box: Signalbox, of: TicketName): Promise<Answer | undefined> {
  return box.once.answerTo(...keyOfTicket(of));
}

/** No Idempotency-Key has a line break, so none leads to this entry. */
function keyOfTicket({ resource, holder, ticket }: TicketName): [key: string, content: string] {
  const named = `ticket\n\n${JSON.stringify([resource, holder, ticket])}`;
  return [hash(named), hash(`refused ${named}`)];
}

/** The server must not carry out a repeat, even if there was no room to keep the first answer. */
function keptOf(answer: Answer): KeptAnswer {
  const kept = { status: answer.status, body: answer.body as Json };
  if (JSON.stringify(kept).length <= MOST_KEPT) return kept;
  const what = 'the request was carried out, but its answer was too large to keep for a repeat; read the state';
  const { status, body } = answerOf(new Problem('answer-not-kept', what));
  return { status, body: body as Json };
}

/** An answer that grants a hold or a claim holds as long as the lease: later the resource may belong to another holder. */
function keptMs({ body }: Answer, isOfLease: boolean): number {
  if (!isOfLease) return KEPT_MS;
  const { ttlMs } = Object(body) as { readonly ttlMs?: unknown };
  return typeof ttlMs === 'number' ? Math.min(ttlMs, KEPT_MS) : KEPT_OF_LEASES_MS;
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
