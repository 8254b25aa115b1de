/**
 * Describes each operation once. Everything else is derived from it: the route, the checks of the input, the OpenAPI description
 * and the readable page.
 */
import type { z } from 'zod';
import type { Role } from '../core/index.ts';
import type { Clock } from '../clock.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { HeaderReader } from './asked.ts';
import type { EventHub } from './event-hub.ts';
import type { ServerFigures } from './figures.ts';
import type { GitHubBoard } from '../github/board.ts';
import type { Answer, ProblemCode } from './problem.ts';

/** The sender of a request, and what its token allows. */
export interface Caller {
  readonly id: string;
  readonly name: string;
  readonly role: Role;
  readonly holders?: readonly string[];
}

/** `name` is a word for people, without a user's path or a server's password. */
export interface StoreName {
  readonly engine: 'memory' | 'embedded' | 'etcd';
  readonly name: string;
}

export interface Call<Params, Query, Body> {
  readonly box: Signalbox;
  readonly caller: Caller;
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  /** Aborts when the client disconnects, the request has taken too long, or the server stops. */
  readonly signal: AbortSignal;
  /** Returns the same signal for a wait that nothing in the store limits. Throws if the token has as many of these as it may. */
  readonly countedSignal: () => AbortSignal;
  /** Of a request that may be repeated: the same for each repeat. The operation then answers what became of the first. */
  readonly request: string | undefined;
  readonly clock: Clock;
  /** Whether guards and pipelines may run commands on the machine of the server. */
  readonly allowsCommands: boolean;
  readonly headers: HeaderReader;
  /** The store that this server serves, as people see it. */
  readonly store: StoreName;
  readonly hub: EventHub;
  readonly figures: ServerFigures;
  /** Undefined if the server follows no repository on GitHub. */
  readonly github: GitHubBoard | undefined;
}

export interface Operation<Params = unknown, Query = unknown, Body = unknown> {
  /** Unique: the operation id in OpenAPI, and the operation's name everywhere else. */
  readonly id: string;
  readonly method: 'get' | 'post' | 'put' | 'delete';
  /** Has `{name}` where a parameter stands. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  readonly role: Role;
  readonly params?: z.ZodType<Params>;
  readonly query?: z.ZodType<Query>;
  readonly body?: z.ZodType<Body>;
  /** By status. An answer without a schema is text of the given type, or a stream: of events, if it has no type. */
  readonly answers: Readonly<
    Record<
      number,
      {
        readonly description: string;
        readonly schema?: z.ZodType;
        readonly type?: string;
        readonly isStream?: true;
      }
    >
  >;
  /** The refusals of this operation, besides those of every request. */
  readonly problems?: readonly ProblemCode[];
  /** The answer contains a secret, which the server must not keep, so an Idempotency-Key has no effect. */
  readonly isSecret?: true;
  run(call: Call<Params, Query, Body>): Promise<Answer | Response>;
}

/** Lets the compiler derive the parameters of `run` from the schemas. */
export function operation<Params, Query, Body>(one: Operation<Params, Query, Body>): Operation {
  return one as unknown as Operation;
}

export function ok(body: unknown, status = 200, headers?: Readonly<Record<string, string>>): Answer {
  return { status, body, ...(headers !== undefined && { headers }) };
}
