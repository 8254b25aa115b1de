/** Tokens over HTTP: show one's own, create, list, revoke. */
import { z } from 'zod';
import { given } from '../../core/given.ts';
import { ROLES } from '../../core/index.ts';
import { tokenJson } from '../../json/token.ts';
import { actorOf } from '../acting.ts';
import { ok, type Operation, operation } from '../operation.ts';
import { Problem } from '../problem.ts';
import { answer, holder, maybe, tokenName } from '../schemas.ts';

const tag = 'tokens';
const role = z.enum(ROLES);
const view = z.object({
  id: z.string(),
  name: z.string(),
  role,
  holders: z.array(z.string()).nullable(),
  createdAt: z.string().nullable(),
  expiresAt: z.string().nullable(),
});

export const tokens: readonly Operation[] = [
  operation({
    ...{ id: 'token.self', method: 'get', path: '/v1/token', tag, role: 'viewer' },
    summary: 'Show what this token allows',
    description: 'Its id, name, role and holders.',
    answers: answer('The token.', { id: z.string(), name: z.string(), role, holders: z.array(z.string()).nullable() }),
    run: async ({ caller: { id, name: called, role: is, holders } }) =>
      Promise.resolve(ok({ id, name: called, role: is, holders: holders ?? null })),
  }),
  operation({
    ...{ id: 'token.list', method: 'get', path: '/v1/tokens', tag, role: 'administrator' },
    summary: 'List tokens',
    description: 'Without their secrets, which the server does not keep.',
    answers: answer('The tokens.', { tokens: z.array(view) }),
    run: async ({ box }) => ok({ tokens: (await box.tokens.list()).map(tokenJson) }),
  }),
  operation({
    ...{ id: 'token.create', method: 'post', path: '/v1/tokens', tag, role: 'administrator' },
    summary: 'Make a token',
    isSecret: true,
    description: 'The answer shows the secret, once. A repeat with the same Idempotency-Key makes another token.',
    body: z.strictObject({
      name: tokenName,
      role,
      holders: maybe(
        z.array(holder).min(1).max(100),
        'For a worker: the holders that it may act for, such as `agent:*`.',
      ),
      ttlMs: maybe(
        z.number().positive(),
        'The server refuses the token after this time; without it, the token does not expire.',
      ),
    }),
    answers: answer('The token with its secret.', { secret: z.string(), token: view }, 201),
    async run({ box, caller, body }) {
      const { secret, token } = await box.tokens.create(given(body) as never, { by: actorOf(caller, undefined) });
      return ok({ secret, token: tokenJson(token) }, 201);
    },
  }),
  operation({
    ...{ id: 'token.revoke', method: 'delete', path: '/v1/tokens/{id}', tag, role: 'administrator' },
    params: z.strictObject({
      id: z
        .string()
        .regex(/^[0-9a-f]{16}$/)
        .describe('The id of the token, which is not its secret.'),
    }),
    summary: 'Revoke a token',
    description: 'Every server of the store refuses it from now on.',
    answers: answer('Revoked.', { outcome: z.literal('revoked'), id: z.string() }),
    problems: ['no-such-thing'],
    async run({ box, caller, params: { id } }) {
      if (await box.tokens.revoke(id, { by: actorOf(caller, undefined) })) return ok({ outcome: 'revoked', id });
      throw new Problem('no-such-thing', `there is no token ${id}`, { id });
    },
  }),
];
