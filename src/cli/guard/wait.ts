/** `signalbox guard wait`: waits until a guard passes. */
import { isatty } from 'node:tty';
import type { Command } from '../command.ts';
import { type Guard, polledInputs, spoken, wakesOn, wakingOf } from '../../core/index.ts';
import { DEFAULT_POLL_MS } from '../../runtime/guards/executor.ts';
import { type GuardLook, isFinal } from '../../runtime/guards/wait.ts';
import { storeUrl } from '../../runtime/location/location.ts';
import { given } from '../arguments.ts';
import { complain, paintFor, printable, screen } from '../output.ts';
import { WaitLimit } from '../opening.ts';
import { withBox } from '../store.ts';
import { tellVerdict } from './check.ts';
import { readGuard, UNNAMED } from './guard-file.ts';
import { ownHolders } from './own-holders.ts';
import { adaptersFor, addGuardOptions, type GuardFlags } from './settings.ts';
import { treeLines, verdictLines } from './verdict.ts';

interface WaitFlags extends GuardFlags {
  readonly poll?: number;
  readonly timeout?: number;
  readonly quiet?: true;
}

export function wait(command: Command): void {
  addGuardOptions(command)
    .duration('--poll', 'how often to check what sends no events (default: 2s)')
    .duration('--timeout', 'give up after this time')
    .option('-q, --quiet', 'print nothing while waiting')
    .about(`wait until a guard passes

Examples:
  signalbox guard wait before-deploy.yaml --timeout 10m
  signalbox guard wait -e 'taskDone: build-7'
  signalbox guard wait -e 'fileExists: build/done' --poll 500ms

Locks, slots, tasks, pipelines and members wake it by their events; files, git, sessions and issues are checked
every --poll, and commands too, once everything else passes. It prints what it waits for to stderr, and ends at
once if the guard can never pass. The answer may be old a moment later: to act on it, use signalbox run --guard,
which checks while it holds the lock. Inside a run, what that run holds does not count.
Exit code 0 once it passes; after the timeout 1, or 69 if something could not be checked.`)
    .action(async (file: string | undefined, flags: WaitFlags) => {
      const guard = await readGuard(command, file, flags.expression, flags.env);
      const adapters = await adaptersFor(flags);
      const { poll: pollMs = DEFAULT_POLL_MS, timeout: timeoutMs } = flags;
      const isSilent = flags.quiet === true || command.isJson;
      const voice = new Voice(guard, pollMs, isSilent ? () => undefined : complain);
      const limit = new WaitLimit(timeoutMs);
      // A waiting command may run for long, so it does maintenance too: it frees the locks of dead holders.
      const outcome = await withBox(
        command,
        async (box, signal) => {
          const own = await ownHolders(box, storeUrl(command.store), process.env);
          const wait = { adapters, pollMs, own, signal, ...given({ timeoutMs: limit.leftMs }) };
          return box.guards.wait(guard, { ...wait, onVerdict: (look) => voice.looked(look) });
        },
        { maintains: true, limit },
      );
      const { explanation } = voice.last as GuardLook;
      const over =
        isFinal(outcome) || timeoutMs === undefined ? undefined : `it did not pass within ${spoken(timeoutMs)}`;
      tellVerdict(command, guard, explanation, verdictLines(explanation.verdict, paintFor(screen())), over);
    });
}

/** Prints what the guard waits for, and later what has changed. */
class Voice {
  readonly #guard: Guard;
  readonly #pollMs: number;
  readonly #say: (line: string) => void;
  #told: ReadonlySet<string> | undefined;
  last: GuardLook | undefined;

  constructor(guard: Guard, pollMs: number, say: (line: string) => void) {
    this.#guard = guard;
    this.#pollMs = pollMs;
    this.#say = say;
  }

  looked(look: GuardLook): void {
    this.last = look;
    if (look.outcome.kind === 'passed') return;
    const before = this.#told;
    const lines = treeLines(look.explanation, paintFor(isatty(2) ? process.stderr : {}));
    this.#told = new Set(lines);
    if (before === undefined) {
      this.#say(`signalbox: waiting${this.#guard.id === UNNAMED ? '' : ` for ${printable(this.#guard.id)}`}`);
      for (const line of [...lines, ...this.#wakes()]) this.#say(`  ${line}`);
      return;
    }
    const changed = lines.filter((line) => !before.has(line));
    if (changed.length > 0) this.#say('signalbox: still waiting');
    for (const line of changed) this.#say(`  ${line.trimStart()}`);
  }

  #wakes(): readonly string[] {
    const { condition, wakeOn } = this.#guard;
    const { resources } = wakingOf(condition, wakeOn);
    const events = resources === undefined ? wakesOn(this.#guard).join(', ') : `events of ${[...resources].join(', ')}`;
    const polled = polledInputs(condition).map(({ key }) => key);
    return [
      ...(resources?.size === 0 ? [] : [`woken by ${events}`]),
      ...(polled.length > 0 ? [`looks every ${spoken(this.#pollMs)} at ${polled.join(', ')}`] : []),
    ].map(printable);
  }
}
