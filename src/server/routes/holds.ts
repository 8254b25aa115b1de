/** The operations that locks and semaphores share over HTTP. Holds are detached: each renewal extends one by its full time. */
import { z } from 'zod';
import { given } from '../../core/given.ts';
import { DETACHED_TTL_MS, type Role, TICKET_MS } from '../../core/index.ts';
import { Failure } from '../../failure.ts';
import { lockJson, semaphoreJson } from '../../json/survey.ts';
import type { Collected } from '../../runtime/holds/tickets.ts';
import type {
  ClaimReleaseOutcome,
  DetachedHold,
  HoldClaim,
  RenewOutcome,
  SettingsView,
} from '../../runtime/holds/terms.ts';
import type { Lock } from '../../runtime/holds/lock.ts';
import type { Semaphore } from '../../runtime/holds/semaphore.ts';
import type { Survey } from '../../runtime/observe/survey/index.ts';
import { NotAcquired } from '../../runtime/refusal.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import { actorOf, refuseForeign, refuseUnlessAdministrator } from '../acting.ts';
import { keepRefusal, keptRefusal } from '../once.ts';
import { type Call, ok, type Operation, operation } from '../operation.ts';
import { type Answer, Problem, type ProblemCode } from '../problem.ts';
import {
  answer,
  anyObject,
  type asking,
  DEFAULT_WAIT_MS,
  holder,
  name,
  reason,
  renewed,
  ticket,
  token,
  ttlMs,
} from '../schemas.ts';

type Kind = 'lock' | 'semaphore';

/** The problems of every wait. */
export const WAITS: readonly ProblemCode[] = [
  ...(['busy', 'full', 'too-large', 'timed-out', 'deadlock', 'impossible', 'capacity-mismatch'] as const),
  ...(['lost', 'gone'] as const),
];

export const params = z.strictObject({ name });
export const base = (kind: Kind): string => `/v1/${kind}s/{name}`;

/** An action on a lock or a semaphore. */
const acting = (kind: Kind, what: string, role: Role = 'worker') =>
  ({ id: `${kind}.${what}`, method: 'post', path: `${base(kind)}/${what}`, tag: `${kind}s`, role, params }) as const;

/** The operations that list all of a kind and show one. `fields`: of one, besides its name. */
export function looking(kind: Kind, list: string, show: string, fields: z.ZodRawShape): readonly Operation[] {
  const tag = `${kind}s` as const;
  const shown = ({ locks, semaphores, at }: Survey): readonly object[] =>
    kind === 'lock' ? locks.map((one) => lockJson(one, at)) : semaphores.map((one) => semaphoreJson(one, at));
  return [
    operation({
      ...{ id: `${kind}.list`, method: 'get', path: `/v1/${tag}`, tag, role: 'viewer' },
      summary: `List ${tag}`,
      description: list,
      answers: answer(`The ${tag}, and keys that cannot be read.`, {
        ...{ revision: z.int(), [tag]: z.array(anyObject), malformed: z.array(anyObject) },
      }),
      async run({ box }) {
        const found = await box.survey();
        return ok({ revision: found.revision, [tag]: shown(found), malformed: found.malformed });
      },
    }),
    operation({
      ...{ id: `${kind}.show`, method: 'get', path: base(kind), tag, role: 'viewer', params },
      summary: `Show a ${kind}`,
      description: show,
      answers: answer(`The ${kind}.`, z.looseObject({ name: z.string(), ...fields })),
      async run({ box, params: { name: called } }) {
        const [one] = shown(await box.survey({ resource: { kind, name: called } }));
        return ok(one);
      },
    }),
  ];
}

function resourceIn(box: Signalbox, kind: Kind, called: string): Lock | Semaphore {
  return kind === 'lock' ? box.lock(called) : box.semaphore(called);
}

type Asking = z.infer<z.ZodObject<typeof asking>> & { readonly holder: string };

interface Askable<H extends DetachedHold> {
  readonly resource: string;
  askDetached(options: never): Promise<Collected<H>>;
  collect(
    claim: { ticket: string; holder: string },
    options: { waitMs: number; signal: AbortSignal },
  ): Promise<Collected<H>>;
}

/**
 * Requests a hold, or goes on with a ticket. A wait that outlasts the request is answered with 202 and the ticket, which keeps
 * the place in the queue while the client or the server is away.
 */
export async function acquire<H extends DetachedHold>(
  call: Pick<Call<unknown, unknown, unknown>, 'box' | 'caller' | 'signal'>,
  of: Askable<H>,
  { wait = true, waitMs = DEFAULT_WAIT_MS, ticket: known, ...asked }: Asking,
): Promise<Answer> {
  const { box, caller } = call;
  const { strategy, holder: who } = asked;
  for (const one of [who, ...(asked.within ?? [])]) refuseForeign(caller, one);
  if (strategy === 'force' || strategy === 'steal-stale') refuseUnlessAdministrator(caller, `strategy ${strategy}`);
  if (strategy === 'force' && (asked.reason ?? '') === '') {
    const why = 'which is shown to the holder that loses the hold';
    throw new Problem('invalid-input', `strategy force needs a reason, ${why}`);
  }
  const { resource } = of;
  const queues = wait && (strategy ?? 'retry') === 'retry';
  const { ttlMs = DETACHED_TTL_MS, ticketMs = TICKET_MS } = asked;
  const options = given({
    ...asked,
    // The hold gets its full time when the client collects it, because until then no client may be there to use it.
    ticketMs: queues && ticketMs < ttlMs ? ticketMs : undefined,
    strategy: wait ? strategy : (strategy ?? 'fail-fast'),
  });
  let answer = known === undefined ? await of.askDetached(options as never) : undefined;
  if (answer === undefined || answer.kind === 'waiting') {
    const of1 = { ticket: answer?.ticket ?? (known as string), holder: who };
    // Most requests are granted without a wait, so the signal is made only for one that waits.
    const limits = { waitMs: known === undefined && !wait ? 0 : waitMs, signal: call.signal };
    answer = await of.collect(of1, limits).catch(async (error: unknown) => {
      const isRefusal = error instanceof NotAcquired && error.refusal.kind !== 'lost';
      if (known !== undefined && isRefusal) await keepRefusal(box, { resource, ...of1 }, error);
      throw error;
    });
  }
  if (answer.kind === 'gone') {
    const refused = known === undefined ? undefined : await keptRefusal(box, { resource, ticket: known, holder: who });
    if (refused !== undefined) return refused;
    const what = `${resource}: this request is no longer in the queue; ask without a ticket`;
    throw new Problem('gone', what, { resource });
  }
  if (answer.kind === 'waiting') {
    const { kind: outcome, position, holders, ticket: place } = answer;
    return ok({ outcome, resource, holder: who, ticket: place, position: position ?? null, holders }, 202);
  }
  return ok(answer.hold);
}

/**
 * Turns an error after a finished change into `outcome-unknown`. The store may be away by then, but `unavailable` would mean that
 * nothing was done, and the server would carry out the repeat.
 */
export function afterChange(resource: string, error: unknown): unknown {
  if (!Failure.is(error) || !['unavailable', 'closed', 'forbidden'].includes(error.code)) return error;
  const what = `${resource}: some of the changes were made, perhaps not all; read the state before you ask again`;
  return new Failure('outcome-unknown', `${what}: ${error.message}`, { cause: error });
}

/** `more` holds the fields that only semaphores have. */
export function rulesTold(
  resource: string,
  { onStale, maxHoldMs, ttlMs: longest }: SettingsView,
  more: object = {},
): Answer {
  return ok({ resource, ...more, onStale, maxHoldMs: maxHoldMs ?? null, ttlMs: longest ?? null });
}

/** The operations on a hold or a place in the queue that its holder names. */
export function byClaim(kind: Kind): readonly Operation[] {
  return [
    operation({
      ...acting(kind, 'renew'),
      summary: 'Renew a hold',
      description: 'Extends a hold by its full time; `ttlMs` changes that time from now on.',
      body: z.strictObject({ holder, token, ttlMs: ttlMs.optional() }),
      answers: answer('Renewed, or held by a process that renews it itself.', renewed),
      problems: ['gone', 'not-owner'],
      async run({ box, caller, params: { name: called }, body: { ttlMs: longer, ...claim } }) {
        refuseForeign(caller, claim.holder);
        const one = resourceIn(box, kind, called);
        return renewalTold(
          one.resource,
          longer === undefined ? await one.renew(claim) : await one.extend(claim, longer),
        );
      },
    }),
    operation({
      ...acting(kind, 'release'),
      summary: 'Release a hold',
      description:
        'Ends a hold; the next in line gets the resource. With the token, a release that comes too late changes nothing.',
      body: z.strictObject({ holder, token: token.optional() }),
      answers: answer('Released.', { outcome: z.literal('released'), resource: z.string() }),
      problems: ['not-owner', 'not-held', 'ambiguous'],
      async run({ box, caller, params: { name: called }, body }) {
        refuseForeign(caller, body.holder);
        const one = resourceIn(box, kind, called);
        return releaseTold(one.resource, await one.release(given(body) as HoldClaim));
      },
    }),
    operation({
      ...acting(kind, 'withdraw'),
      summary: 'Give up waiting',
      description: 'Takes a request out of the queue by its ticket, and releases its hold if it was granted meanwhile.',
      body: z.strictObject({ holder, ticket }),
      answers: answer('Withdrawn.', { outcome: z.literal('withdrawn'), resource: z.string() }),
      problems: ['gone'],
      async run({ box, caller, params: { name: called }, body }) {
        refuseForeign(caller, body.holder);
        const one = resourceIn(box, kind, called);
        const { resource } = one;
        const { kind: outcome } = await one.withdraw(body);
        if (outcome === 'gone')
          throw new Problem('gone', `${resource}: this request is no longer in the queue`, { resource });
        return ok({ outcome, resource });
      },
    }),
  ];
}

export function renewalTold(resource: string, { kind: outcome, ...times }: RenewOutcome): Answer {
  if (outcome === 'lost') throw holdLost(resource);
  if (outcome === 'not-owner') throw notOwner(resource);
  return ok({ outcome, resource, ...times });
}

export function holdLost(resource: string): Problem {
  return new Problem('gone', `${resource}: the hold was lost`, { resource, outcome: 'lost' });
}

export function notOwner(resource: string): Problem {
  const details = { resource, outcome: 'not-owner' };
  return new Problem('not-owner', `${resource}: this token and holder do not have it`, details);
}

function releaseTold(resource: string, outcome: ClaimReleaseOutcome): Answer {
  switch (outcome.kind) {
    case 'released':
      return ok({ outcome: 'released', resource });
    case 'not-owner':
      throw notOwner(resource);
    case 'already-free':
      throw new Problem('not-held', `${resource}: it is not held`, { resource, outcome: outcome.kind });
    case 'ambiguous':
      throw new Problem('ambiguous', `${resource}: this holder has several holds; name one by its token`, {
        ...{ resource, tokens: outcome.tokens },
      });
  }
}

export function breaking(kind: Kind): Operation {
  return operation({
    ...acting(kind, 'break', 'administrator'),
    summary: 'End every hold',
    description:
      'Ends all holds of the resource and tells the holders why; an event records who did it. The next in line gets the resource.',
    body: z.strictObject({
      reason,
      holder: holder.optional(),
      token: token
        .describe(
          'The newest token that you saw. Holds granted since then stay; if there are no others, the answer is 409.',
        )
        .optional(),
    }),
    answers: answer('How many holds were ended.', {
      outcome: z.literal('broken'),
      resource: z.string(),
      broken: z.int(),
      by: z.string(),
    }),
    problems: ['not-held'],
    async run({ box, caller, params: { name: called }, body }) {
      const by = actorOf(caller, body.holder);
      const one = resourceIn(box, kind, called);
      const { resource } = one;
      const { reason: why, token: newest } = body;
      const { broken } = await one.break({ holder: by, reason: why, ...given({ token: newest }) });
      if (broken === 0) throw new Problem('not-held', `${resource}: ${nothingBroken(newest)}`, { resource });
      return ok({ outcome: 'broken', resource, broken, by });
    },
  });
}

function nothingBroken(newest: number | undefined): string {
  return newest === undefined
    ? 'it is not held, so there is nothing to break'
    : `nothing that was granted up to token ${newest} is still held, so nothing was broken`;
}
