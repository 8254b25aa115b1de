/**
 * One description of each operation, from which everything else is made: the route, the checks of what comes in, the
 * OpenAPI description, and what else shows operations to people and programs.
 */
import type { z } from 'zod';
import type { Role } from '../core/index.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { HeaderReader } from './asked.ts';
import type { EventHub } from './event-hub.ts';
import type { ServerFigures } from './figures.ts';
import type { GitHubBoard } from '../github/board.ts';
import type { Answer, ProblemCode } from './problem.ts';

/** Who sent a request: what its token allows. */
export interface Caller {
  readonly id: string;
  readonly name: string;
  readonly role: Role;
  readonly holders?: readonly string[];
}

/** `name`: a word for people, without the path of a user or the password of a server. */
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
  /** Aborts when the client is gone, when the request has taken too long, or when the server stops. */
  readonly signal: AbortSignal;
  /** Whether guards and pipelines may run commands on the machine of the server. */
  readonly allowsCommands: boolean;
  readonly headers: HeaderReader;
  /** The store that this server serves, as people are shown it. */
  readonly store: StoreName;
  readonly hub: EventHub;
  readonly figures: ServerFigures;
  /** Undefined if the server follows no repository on GitHub. */
  readonly github: GitHubBoard | undefined;
}

export interface Operation<Params = unknown, Query = unknown, Body = unknown> {
  /** Unique: the operation id of OpenAPI, and the name of whatever else is made of it. */
  readonly id: string;
  readonly method: 'get' | 'post' | 'put' | 'delete';
  /** With `{name}` where a parameter stands. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  readonly role: Role;
  readonly params?: z.ZodType<Params>;
  readonly query?: z.ZodType<Query>;
  readonly body?: z.ZodType<Body>;
  /** By status. Without a schema it is text of the given type, or a stream. */
  readonly answers: Readonly<
    Record<number, { readonly description: string; readonly schema?: z.ZodType; readonly type?: string }>
  >;
  /** What it may be refused with, besides what may happen to every request. */
  readonly problems?: readonly ProblemCode[];
  /** Its answer has a secret in it, which must not be kept: an Idempotency-Key does nothing. */
  readonly isSecret?: true;
  run(call: Call<Params, Query, Body>): Promise<Answer | Response>;
}

/** Lets the compiler derive what `run` gets from the schemas. */
export function operation<Params, Query, Body>(one: Operation<Params, Query, Body>): Operation {
  return one as unknown as Operation;
}

export function ok(body: unknown, status = 200, headers?: Readonly<Record<string, string>>): Answer {
  return { status, body, ...(headers !== undefined && { headers }) };
}
