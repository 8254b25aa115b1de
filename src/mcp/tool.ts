/** What a tool is, and what it gets when it is called. */
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

/** Who calls, and how its holds live. */
export interface Desk {
  readonly box: Signalbox;
  readonly seat: Seat;
  readonly caller: Caller;
  readonly clock: Clock;
  readonly limits: McpLimits;
  /** Aborts when the client is gone, where the transport knows. */
  readonly gone?: AbortSignal | undefined;
}

export interface ToolCall extends Desk {
  /** Aborts when the client gives up the call or is gone. */
  readonly signal: AbortSignal;
  /** Whether this request may be answered with a task. */
  readonly takesTasks: boolean;
  /** Tells how long the call has waited and why; undefined if the client wants no progress. */
  readonly progress: ((waitedMs: number, ofMs: number, message: string) => void) | undefined;
  /** A holder of its own for a caller that names none. */
  newHolder(): string;
}

/** In place of a result: the client polls, and the model hears of it when it is done. */
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
  /** Further fields of its answers; absent on a tool that may answer with a task, which no schema can describe. */
  readonly output?: z.ZodRawShape;
  readonly annotations: ToolAnnotations;
  /** It renews what its holder has by itself, because it says what that is. */
  readonly renewsHolder?: true;
  run(input: Input, call: ToolCall): Promise<Told | TaskMade>;
}

/** Lets the compiler derive what `run` gets from the schema. */
export function tool<Input>(one: Tool<Input>): Tool {
  return one as unknown as Tool;
}

/** Looks and changes nothing. */
export const READS: ToolAnnotations = { readOnlyHint: true, openWorldHint: false };
/** Changes what is coordinated, and takes nothing from others. */
export const WRITES: ToolAnnotations = { readOnlyHint: false, destructiveHint: false, openWorldHint: false };
/** The same, and a second call changes nothing more. */
export const WRITES_ONCE: ToolAnnotations = { ...WRITES, idempotentHint: true };
/** Takes something from others. */
export const TAKES: ToolAnnotations = { readOnlyHint: false, destructiveHint: true, openWorldHint: false };

/** Every answer has these, errors too. Other fields may be added. */
export function answerSchema(fields: z.ZodRawShape = {}): z.ZodType {
  return z.looseObject({
    status: z.string().describe('One word for programs.'),
    message: z.string().describe('What happened.'),
    next: z.string().describe('What to do next.'),
    ...Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, (field as z.ZodType).optional()])),
  });
}
