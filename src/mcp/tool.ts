/** The shape of a tool, and what it gets when it is called. */
import type { ToolAnnotations } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { Clock } from '../clock.ts';
import type { Role } from '../core/index.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { Caller } from '../server/operation.ts';
import type { McpLimits } from './limits.ts';
import type { Place } from './place.ts';
import type { Told } from './result.ts';
import type { Seat } from './seat.ts';

/** The caller, and what keeps its holds alive. */
export interface Desk {
  readonly box: Signalbox;
  readonly seat: Seat;
  readonly caller: Caller;
  readonly clock: Clock;
  readonly limits: McpLimits;
  /** Aborts when the client disconnects, if the transport notices. */
  readonly gone?: AbortSignal | undefined;
  /** Aborts when the server stops: a waiting call then answers what it would answer at the end of its time. */
  readonly stopping?: AbortSignal | undefined;
}

export interface ToolCall extends Desk {
  /** Aborts when the client cancels the call or disconnects. */
  readonly signal: AbortSignal;
  /** Whether this request may be answered with a task. */
  readonly takesTasks: boolean;
  /** Reports how long the call has waited and why; undefined if the client wants no progress. */
  readonly progress: ((waitedMs: number, ofMs: number, message: string) => void) | undefined;
  /** Makes a holder name for a caller that names none. */
  newHolder(): string;
}

/** Returned in place of a result: the client polls the task, and tells the model when it is done. */
export interface TaskMade {
  readonly task: Place;
  readonly message: string;
}

export interface Tool<Input = unknown> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly role: Role;
  readonly input: z.ZodType<Input>;
  /** Further fields of its answers; absent for a tool that may answer with a task, which no schema can describe. */
  readonly output?: z.ZodRawShape;
  readonly annotations: ToolAnnotations;
  /** Set if the tool itself renews the holder's holds, because it also reports them. */
  readonly renewsHolder?: true;
  run(input: Input, call: ToolCall): Promise<Told | TaskMade>;
}

/** Lets the compiler derive the parameters of `run` from the schema. */
export function tool<Input>(one: Tool<Input>): Tool {
  return one as unknown as Tool;
}

/** For tools that only read. */
export const READS: ToolAnnotations = { readOnlyHint: true, openWorldHint: false };
/** For tools that change the store and take nothing from others. */
export const WRITES: ToolAnnotations = { readOnlyHint: false, destructiveHint: false, openWorldHint: false };
/** For tools that write, and whose second call changes nothing more. */
export const WRITES_ONCE: ToolAnnotations = { ...WRITES, idempotentHint: true };
/** For tools that take something from others. */
export const TAKES: ToolAnnotations = { readOnlyHint: false, destructiveHint: true, openWorldHint: false };

/** The fields of every answer, also of errors. A tool may add others. */
export function answerSchema(fields: z.ZodRawShape = {}): z.ZodType {
  return z.looseObject({
    status: z.string().describe('One word for programs.'),
    message: z.string().describe('What happened.'),
    next: z.string().describe('What to do next.'),
    ...Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, (field as z.ZodType).optional()])),
  });
}
