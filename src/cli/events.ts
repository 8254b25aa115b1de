/** `signalbox events tail`: prints events as they happen. */
import { type Command, InvalidArgumentError } from './command.ts';
import { patternProblem } from '../core/index.ts';
import { timeLimit } from '../clock.ts';
import type { EventPattern, SignalboxEvent } from '../runtime/observe/event-types.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { EVENT_KINDS } from '../runtime/observe/event-kinds.ts';
import { numberArgument } from './arguments.ts';
import { CliExit, EXIT } from './exit-code.ts';
import { anyOf } from './interrupt.ts';
import { look } from './read-only.ts';
import { paintFor, print, printable, printJson, tell, screen } from './output.ts';
import { withBox } from './store.ts';

const KINDS = EVENT_KINDS.map((kind) => `'${kind}:*'`).join(', ');
const EXAMPLES = `
Examples:
  signalbox events tail
  signalbox events tail 'lock:*'
  signalbox events tail lock:released -n 1           until the next release of any lock
  signalbox events tail --since 10m                  what happened in the last ten minutes, and goes on
  signalbox events tail --since 1h --no-follow 'pipeline:*'
  signalbox events tail --since 1d --no-follow -n 20  the last twenty
  signalbox events tail --json --for 1h >> events.jsonl

Patterns: an event (lock:acquired), everything ('*'), or all of a kind:
${KINDS}`;

export function define(command: Command): void {
  command.addHelpText('after', EXAMPLES).subcommands({ denied, tail });
}

function tail(command: Command): void {
  command
    .description('print events as they happen, one per line')
    .argument('[pattern]', 'which events to print', '*')
    .option('-n, --count <number>', 'stop after this many events; with --since: the newest of them', countArgument)
    .duration('--for', 'stop after this time')
    .duration('--since', 'begin with what happened this long ago, as far as the store remembers')
    .option('--no-follow', 'stop after what has happened; needs --since')
    .addHelpText('after', EXAMPLES)
    .action((pattern: string, flags: TailFlags) => {
      const show = (event: SignalboxEvent): boolean => {
        command.answer(jsonOf(event), () => eventLine(event));
        return true;
      };
      const problem = patternProblem(pattern, 'the pattern');
      if (problem !== undefined) throw new CliExit(EXIT.usage, problem);
      if (flags.since !== undefined) return pastEvents(command, pattern as EventPattern, flags, flags.since, show);
      if (!flags.follow)
        throw new CliExit(EXIT.usage, '--no-follow needs --since DURATION: else there is nothing to print');
      return followEvents(command, pattern as EventPattern, flags, show);
    });
}

interface TailFlags extends FollowFlags {
  readonly since?: number;
  readonly follow: boolean;
}

/** The past is complete once no event has arrived for this long. */
const QUIET_MS = 250;

/**
 * Prints past events by time, then new ones. Two watches deliver the past, one of them for tasks, so it collects the past first.
 */
async function pastEvents(
  command: Command,
  pattern: EventPattern,
  flags: TailFlags,
  sinceMs: number,
  show: (event: SignalboxEvent) => boolean,
): Promise<void> {
  await following(command, flags, async (box, over) => {
    const enough = new AbortController();
    const signal = AbortSignal.any([over, enough.signal]);
    let left = flags.count ?? Number.POSITIVE_INFINITY;
    let past: SignalboxEvent[] | undefined = [];
    const print = (event: SignalboxEvent): void => {
      if (left <= 0 || !show(event)) return;
      left -= 1;
      if (left <= 0) enough.abort();
    };
    const flush = (): void => {
      const collected = (past ?? []).sort((one, other) => one.at - other.at);
      past = undefined;
      // If the past has more events than asked for, print the newest.
      for (const event of collected.slice(-Math.min(left, collected.length))) print(event);
      if (flags.follow) tell('signalbox: waiting for events; Ctrl-C stops');
      else enough.abort();
    };
    let quiet: NodeJS.Timeout | undefined;
    try {
      const told = (event: SignalboxEvent): void => {
        if (past === undefined) return print(event);
        past.push(event);
        quiet?.refresh();
      };
      const forgotten = (): void => tell('signalbox: the store has forgotten older events; these are all it has');
      const caughtUp = (): void => {
        quiet = setTimeout(flush, QUIET_MS);
      };
      await box.eventsSince(pattern, Date.now() - sinceMs, { told, forgotten, caughtUp }, signal);
    } finally {
      clearTimeout(quiet);
    }
  });
}

/** Counts denials, which make no event for other processes. */
function denied(command: Command): void {
  command
    .about(`print how often each lock and semaphore was denied, in all processes together

Examples:
  signalbox events denied
  signalbox events denied --json | jq '.byResource["lock/main-branch"]'

A request is denied if it finds the lock taken and does not wait (--no-wait, tryAcquire). Each process adds its
own count every 30 s and when it ends.`)
    .action(async () => {
      const { found, missing } = await look(command, (box) => box.denials());
      const { total, byResource } = found;
      if (command.isJson) return printJson({ total, byResource: Object.fromEntries(byResource) });
      if (missing !== undefined) return print(printable(`${missing} No request was denied.`));
      if (total === 0) return print('No request was denied.');
      for (const [resource, count] of byResource) print(`${String(count).padStart(8)}  ${printable(resource)}`);
      print(`${String(total).padStart(8)}  in all`);
    });
}

export function countArgument(text: string): number {
  const count = numberArgument(text);
  if (count < 1) throw new InvalidArgumentError('expected a whole number of at least 1');
  return count;
}

export interface FollowFlags {
  readonly count?: number;
  readonly for?: number;
}

/** Does `work` with the store until Ctrl-C, or for as long as `--for` says. */
export function following(
  command: Command,
  { for: forMs }: FollowFlags,
  work: (box: Signalbox, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  return withBox(command, async (box, interrupted) => {
    const limit = forMs === undefined ? undefined : timeLimit(forMs);
    try {
      await work(box, anyOf(interrupted, limit?.signal));
    } finally {
      limit?.cancel();
    }
  });
}

/** `show` returns whether the event counts for `--count`. */
export function followEvents(
  command: Command,
  pattern: EventPattern,
  flags: FollowFlags,
  show: (event: SignalboxEvent) => boolean,
): Promise<void> {
  return following(command, flags, async (box, signal) => {
    let left = flags.count ?? Number.POSITIVE_INFINITY;
    tell('signalbox: waiting for events; Ctrl-C stops');
    for await (const event of box.events(pattern, { signal })) {
      if (show(event)) left -= 1;
      if (left <= 0) return;
    }
  });
}

/** Puts the fields that every event has first. */
function jsonOf(event: SignalboxEvent): object {
  const { type, resource, holder, at, id, ...details } = event;
  return { type, resource, holder, at: timeOf(at), ...(id !== undefined && { id }), ...details };
}

function eventLine(event: SignalboxEvent): string {
  const { type, resource, holder, at, id: _, ...details } = event;
  const paint = paintFor(screen());
  if (type === 'resync') return `${timeOf(at)}  ${paint('yellow', 'resync')}  some events were missed`;
  const told = Object.entries(details).map(([name, value]) => `${name}=${shownValue(value)}`);
  const words = [
    printable(type).padEnd(19),
    printable(resource),
    printable(holder),
    paint('dim', printable(told.join(' '))),
  ];
  return `${timeOf(at)}  ${words.join('  ')}`.trimEnd();
}

function shownValue(value: unknown): string {
  return typeof value === 'string' && /^[\w:./-]+$/.test(value) ? value : JSON.stringify(value);
}

export function timeOf(at: number): string {
  return new Date(at).toISOString();
}
