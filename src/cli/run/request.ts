/** Parses and checks the options of `run` before anything is opened. */
import { plainName, requestProblem, type Wanted, wantedLock, wantedSlots } from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import type { Want } from '../../runtime/holds/wants.ts';
import { given, ON_LOST, type OnLost } from '../arguments.ts';
import { parseDuration, SHORTEST_TTL_MS } from '../duration.ts';
import { ticketsIn } from '../ticket.ts';
import type { Tells } from './voice.ts';

export interface RunRequest {
  /** In the order of the command line, locks first. */
  readonly wants: readonly Want[];
  /** Files and conditions, as they were given. */
  readonly guards: readonly string[];
  readonly argv: readonly [string, ...string[]];
  readonly store?: string;
  /** Undefined: no limit. */
  readonly waitMs?: number;
  readonly priority?: number;
  readonly holder?: string;
  readonly reason?: string;
  readonly onLost: OnLost;
  readonly graceMs: number;
  readonly ttlMs: number;
  readonly tells: Tells;
  /** Keeps the place in line when the time is up; a text: goes on with that ticket. */
  readonly ticket?: true | string;
}

/** The options as commander returns them. */
export interface RunOptions {
  readonly lock?: readonly string[];
  readonly sem?: readonly string[];
  readonly guard?: readonly string[];
  /** `false` for `--no-wait`. */
  readonly wait?: string | boolean;
  readonly priority?: string;
  readonly holder?: string;
  readonly reason?: string;
  readonly onLost?: string;
  readonly grace?: string;
  readonly ttl?: string;
  readonly verbose?: boolean;
  readonly quiet?: boolean;
  readonly json?: boolean;
  readonly ticket?: true | string;
  readonly store?: string;
}

export function requestOf(argv: readonly string[], options: RunOptions): RunRequest {
  const [program, ...args] = argv;
  if (program === undefined || program === '') throw wrong('the command is missing; write it after --');
  const wants = [
    ...(options.lock ?? []).map(lockOf),
    ...(options.sem ?? []).map((text) => wantOf('--sem', wantedSlots(text))),
  ];
  const { guard: guards = [] } = options;
  if (wants.length === 0 && guards.length > 0)
    throw wrong('a guard is checked while something is held; add --lock NAME or --sem NAME');
  if (wants.length === 0) {
    const meant = args[0] === '--' ? `: signalbox run --lock ${program} -- ${args[1] ?? 'COMMAND'}` : '';
    throw wrong(`nothing to hold is named; use --lock NAME or --sem NAME${meant}`);
  }
  const { onLost = 'term', holder, reason, store } = options;
  if (!ON_LOST.some((one) => one === onLost))
    throw wrong(`--on-lost is ${shown(onLost)}; expected ${ON_LOST.join(', ')}`);
  const ttlMs = duration('--ttl', options.ttl ?? '15s');
  if (ttlMs < SHORTEST_TTL_MS) throw wrong(`--ttl is ${shown(options.ttl)}; expected at least ${SHORTEST_TTL_MS}ms`);
  const waitMs = waitOf(options.wait);
  const priority = options.priority === undefined ? undefined : numberOf('--priority', options.priority);
  const { ticket } = options;
  if (typeof ticket === 'string') ticketsIn(ticket);
  const problem = requestProblem({ holder, reason, priority });
  if (problem !== undefined) throw wrong(problem);
  return {
    wants,
    guards,
    argv: [program, ...args],
    onLost: onLost as OnLost,
    graceMs: duration('--grace', options.grace ?? '5s'),
    ttlMs,
    tells: tellsOf(options),
    ...given({ store, waitMs, priority, holder, reason, ticket }),
  };
}

/** With --json stderr is for programs, which read one object. */
function tellsOf({ quiet, verbose, json }: RunOptions): Tells {
  if (quiet === true) return 'never';
  if (verbose === true) return 'every-change';
  return json === true ? 'never' : 'now-and-then';
}

/** `sem/api` names a semaphore everywhere; taken as the name of a lock, it would be a lock that nobody else uses. */
function lockOf(text: string): Want {
  const name = plainName('semaphore', text);
  if (name !== text)
    throw wrong(
      `--lock ${shown(text)} names a semaphore: use --sem ${name}. A lock that is really called so is lock/${text}`,
    );
  return wantOf('--lock', wantedLock(text));
}

function wantOf(option: string, wanted: Wanted<Want>): Want {
  if (!wanted.ok) throw wrong(`${option} ${wanted.problem}`);
  return wanted.want;
}

function waitOf(wait: string | boolean | undefined): number | undefined {
  if (wait === false) return 0;
  return typeof wait === 'string' ? duration('--wait', wait) : undefined;
}

function duration(option: string, text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    throw Failure.is(error, 'invalid') ? wrong(`${option} is ${shown(text)}; ${error.message}`) : error;
  }
}

function numberOf(option: string, text: string): number {
  const number = Number(text);
  if (text.trim() === '' || !Number.isFinite(number)) throw wrong(`${option} is ${shown(text)}; expected a number`);
  return number;
}

function wrong(message: string): Failure {
  return new Failure('invalid', message);
}
