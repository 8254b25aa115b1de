/** Members over HTTP. They are detached: a program renews its membership until it leaves. */
import { z } from 'zod';
import { given } from '../../core/given.ts';
import { type AssetTaken, coordinatorOf, type Member, type ViewChange } from '../../core/index.ts';
import { type Crew, crewJson, crewOf, memberJson } from '../../json/member.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import type { Malformed } from '../../runtime/stored.ts';
import { refuseForeign, refuseUnlessAdministrator } from '../acting.ts';
import { entryStream, type SentEntry } from '../entry-stream.ts';
import { ok, type Operation, operation } from '../operation.ts';
import { Problem } from '../problem.ts';
import { answer, anyObject, id, maybe, metadata, renewed, ttlMs } from '../schemas.ts';
import { renewalTold } from './holds.ts';

const tag = 'members';
const path = '/v1/members/{id}';
const params = z.strictObject({ id });
const incarnation = z
  .int()
  .min(1)
  .describe('Of the join: it tells this membership from others with the same id, before and after it.');
const assets = z.array(id).max(10_000).describe('What the member owns, such as `shard/3`.');
const exclusive = z.boolean().optional().describe('No other member may own these assets; false if not given.');

export const members: readonly Operation[] = [
  operation({
    ...{ id: 'member.list', method: 'get', path: '/v1/members', tag, role: 'viewer' },
    summary: 'List the live members',
    description:
      'With what they own, as of `revision` or later; `coordinator` is the first in the order of the ids. `malformed`: keys that ' +
      'were passed over because they cannot be read.',
    query: z.strictObject({ id: id.optional().describe('Only this one, if it is alive.') }),
    answers: answer('The members.', {
      revision: z.int(),
      members: z.array(anyObject),
      coordinator: z.string().nullable(),
      malformed: z.array(anyObject),
    }),
    async run({ box, query }) {
      const malformed: Malformed[] = [];
      const { revision } = await box.health();
      const crew: Crew = await crewOf(box, (one) => void malformed.push(one));
      const wanted = crew.members.filter(({ id: one }) => query.id === undefined || one === query.id);
      return ok({ revision, ...crewJson({ ...crew, members: wanted }), malformed });
    },
  }),
  operation({
    ...{ id: 'member.join', method: 'post', path: '/v1/members', tag, role: 'worker' },
    summary: 'Join',
    description:
      'Of any number that want an id at once, one gets it. Renew it within `renewWithinMs`, again and again: others see that a ' +
      'member left which was not renewed for `ttlMs`. A token that is bound to holders joins only with ids that fit.',
    body: z.strictObject({
      id,
      metadata: metadata.optional(),
      assets: assets.optional(),
      exclusive,
      weight: z.number().positive().optional().describe('Its share of the keys that are placed on members.'),
      sensitive: z.boolean().optional().describe('The witness enters only a salted hash of the metadata.'),
      ttlMs: ttlMs.optional(),
    }),
    answers: answer(
      'Joined.',
      {
        outcome: z.literal('joined'),
        member: z.string(),
        incarnation: z.int(),
        ttlMs: z.number(),
        renewWithinMs: z.number(),
      },
      201,
    ),
    problems: ['exists', 'asset-taken', 'lost'],
    async run({ box, caller, body: { id: member, metadata: about, ...terms } }) {
      refuseForeign(caller, member);
      const outcome = await box.members.joinDetached(member, about as never, given(terms));
      if (outcome.kind === 'asset-taken') throw assetTaken(member, outcome);
      if (outcome.kind === 'taken') {
        const what = `member/${member}: a member with this id is alive; choose another id`;
        throw new Problem('exists', what, { member, incarnation: outcome.member.incarnation });
      }
      const { id: _, ...joined } = outcome.member;
      return ok({ outcome: 'joined', member, ...joined }, 201);
    },
  }),
  operation({
    ...{ id: 'member.watch', method: 'get', path: '/v1/members/watch', tag, role: 'viewer' },
    summary: 'Follow the members',
    description:
      'Server-sent events, each a `view`: at first one with all `members`, then one for each change, with the members that ' +
      '`joined`, `left` or `changed`. One with `isResync` has all members again, because views in between were skipped. After ' +
      'a lost connection open it again: the first view is the present one.',
    answers: { 200: { description: 'A stream of `text/event-stream`.' } },
    run: ({ box, signal }) => Promise.resolve(entryStream({ event: 'view' }, (over) => viewsOf(box, over), signal)),
  }),
  operation({
    ...{ id: 'member.move', method: 'post', path: '/v1/members/move', tag, role: 'worker' },
    summary: 'Move assets from one member to another',
    description:
      'In one step: nobody sees them with both, or with neither. The token must fit both members. A process that joined by itself ' +
      'expects nobody to change what it owns: to move its assets all the same, an administrator says `attached`.',
    body: z.strictObject({
      ...{ assets, from: id, to: id },
      fromIncarnation: z.int().min(1).optional().describe('The membership of `from` that you mean; any, if not given.'),
      toIncarnation: z.int().min(1).optional().describe('The membership of `to` that you mean; any, if not given.'),
      attached: maybe(z.boolean(), 'Also if one of the two joined from its own process; false if not given.'),
    }),
    answers: answer('Moved.', {
      outcome: z.literal('moved'),
      from: z.string(),
      to: z.string(),
      assets: z.array(z.string()),
    }),
    problems: ['no-such-thing', 'not-owner', 'attached'],
    async run({ box, caller, body: { assets: moving, attached: isAsked = false, ...options } }) {
      const { from, to } = options;
      for (const one of [from, to]) refuseForeign(caller, one);
      if (isAsked) refuseUnlessAdministrator(caller, 'moving assets of a process that joined by itself');
      const terms = { from, to, ...given(options), detachedOnly: !isAsked };
      const outcome = await box.members.moveAssets(moving, terms);
      if (outcome.kind === 'moved') return ok({ outcome: 'moved', from, to, assets: outcome.assets });
      if (outcome.kind === 'attached')
        throw attached(outcome.member, 'an administrator moves its assets with `attached`');
      if (outcome.kind === 'no-member') {
        const { member } = outcome;
        const isOther = (member === to ? options.toIncarnation : options.fromIncarnation) !== undefined;
        const told = isOther ? `that membership of ${member} has ended` : `there is no member ${member}`;
        throw new Problem('no-such-thing', told, { member });
      }
      const { asset, owners } = outcome;
      throw new Problem('not-owner', `member/${from} does not have the asset ${asset}`, { asset, owners });
    },
  }),
  operation({
    ...{ id: 'member.renew', method: 'post', path: `${path}/renew`, tag, role: 'worker', params },
    summary: 'Stay a member',
    description: 'Extends the membership by its full time. One that was not renewed in time is gone: join again.',
    body: z.strictObject({ incarnation }),
    answers: answer('Renewed, or of a process that renews it itself.', renewed),
    problems: ['gone'],
    async run({ box, caller, params: { id: member }, body }) {
      refuseForeign(caller, member);
      const outcome = await box.members.renew(member, body.incarnation);
      if (outcome.kind === 'lost') throw gone(member);
      return renewalTold(`member/${member}`, outcome);
    },
  }),
  operation({
    ...{ id: 'member.assets', method: 'post', path: `${path}/assets`, tag, role: 'worker', params },
    summary: 'Change what a member owns',
    description:
      '`set` registers exactly these assets, `add` these as well, `remove` these no longer. All of them, or none.',
    body: z.strictObject({ incarnation, change: z.enum(['set', 'add', 'remove']), assets, exclusive }),
    answers: answer('What it owns now.', {
      outcome: z.literal('registered'),
      member: z.string(),
      assets: z.array(z.string()),
    }),
    problems: ['gone', 'asset-taken', 'attached'],
    async run({ box, caller, params: { id: member }, body }) {
      const { incarnation: which, change, assets: named, ...options } = body;
      refuseForeign(caller, member);
      const outcome = await box.members.changeAssets(member, which, change, named, given(options));
      if (outcome.kind === 'registered') return ok({ outcome: 'registered', member, assets: outcome.assets });
      if (outcome.kind === 'asset-taken') throw assetTaken(member, outcome);
      throw outcome.kind === 'attached' ? attached(member) : gone(member);
    },
  }),
  operation({
    ...{ id: 'member.leave', method: 'post', path: `${path}/leave`, tag, role: 'worker', params },
    summary: 'Leave',
    description: 'What it owned is free in the same step. With an old incarnation nothing is changed.',
    body: z.strictObject({ incarnation }),
    answers: answer('Left.', { outcome: z.literal('left'), member: z.string() }),
    problems: ['gone', 'attached'],
    async run({ box, caller, params: { id: member }, body }) {
      refuseForeign(caller, member);
      const { kind: outcome } = await box.members.leave(member, body.incarnation);
      if (outcome === 'left') return ok({ outcome, member });
      throw outcome === 'attached' ? attached(member) : gone(member);
    },
  }),
  operation({
    ...{ id: 'topology', method: 'get', path: '/v1/topology', tag, role: 'viewer' },
    summary: 'The last topology that was broadcast',
    description: 'Null if none ever was. The members themselves, as they are now, are at `/v1/members`.',
    answers: answer('The topology.', { topology: anyObject.nullable() }),
    run: async ({ box }) => ok({ topology: await box.members.topology() }),
  }),
];

async function* viewsOf(box: Signalbox, signal: AbortSignal): AsyncGenerator<SentEntry, void> {
  const followed = await box.members.follow({ keepAlive: false });
  try {
    const changes = followed.changes({ signal });
    yield { data: viewJson({ view: followed.view(), joined: [], left: [], changed: [], isResync: false }, true) };
    for await (const change of changes) yield { data: viewJson(change, change.isResync) };
  } finally {
    followed.stop();
  }
}

function viewJson({ view, joined, left, changed, isResync }: ViewChange<Member>, isWhole: boolean): object {
  return {
    version: view.version,
    coordinator: coordinatorOf(view),
    ...(isWhole && { members: view.members.map(memberJson) }),
    joined: joined.map(memberJson),
    left: left.map(({ id: one }) => one),
    changed: changed.map(memberJson),
    isResync,
  };
}

function assetTaken(member: string, { asset, owner }: AssetTaken): Problem {
  const what = `member/${member}: the asset ${asset} belongs to member/${owner}`;
  return new Problem('asset-taken', what, { member, asset, owner });
}

function gone(member: string): Problem {
  return new Problem('gone', `member/${member}: this membership has ended; join again`, { member });
}

function attached(member: string, how = 'nobody else can change that'): Problem {
  return new Problem('attached', `member/${member}: its process joined by itself; ${how}`, { member });
}
