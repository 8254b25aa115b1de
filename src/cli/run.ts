/** `signalbox run`: acquire all or nothing, run a command, release. */
import type { Command } from './command.ts';
import { Failure } from '../failure.ts';
import { addInputOptions, type GuardFlags } from './guard/settings.ts';
import type { Guard } from '../core/index.ts';
import type { RunOptions } from './run/request.ts';
import type { Guarding } from './run/guarding.ts';
import { usageError } from './usage.ts';

const EXAMPLES = `
Examples:
  signalbox run --lock main-branch -- git push          one push at a time
  signalbox run --lock docs:shared -- make check        together with other readers, but with no writer
  signalbox run --sem agents/4 -- ./agent.sh            at most four at once; $SIGNALBOX_SLOT_AGENTS is 0 to 3
  signalbox run --sem ram=8/32 --wait 10m -- make -j8   eight of 32 slots, or exit 75 after ten minutes
  signalbox run --lock db --lock cache --no-wait -- ./migrate.sh
  signalbox run --lock main --wait 90s --ticket -- git push             75: prints a ticket; the place is kept for 60 s
  signalbox run --lock main --wait 90s --ticket "$TICKET" -- git push   goes on in the same place
  signalbox run --lock main --guard before-merge.yaml -- git push
  signalbox run --lock main --guard 'fileNotExists: FREEZE' --guard 'command: {cmd: make test}' -- git push

A guard is checked while the locks are held, and what this run holds does not count. While it does not pass,
the locks are free for others: the run waits until it passes, acquires them again, and checks again.

The command gets SIGNALBOX_TOKEN, SIGNALBOX_SLOT_NAME and more in its environment, and a run
inside it re-enters these holds.

Exit codes: the command's own · 128+n ended by signal n · 126 not executable · 127 not found
            64 usage · 69 store unreachable, or a guard cannot be judged
            75 not begun: not acquired, or a guard does not pass
            76 lost while running · 77 the store refuses you`;

/** Loads modules only in the action, so that `--help` and mistakes are fast. */
export function define(command: Command): void {
  command
    .usage('[options] -- COMMAND [ARGUMENT…]')
    .argument('<command...>', 'what to run, with its arguments')
    .passThroughOptions()
    .list('--lock <name>', 'a lock; NAME:shared allows other readers (repeatable)')
    .list('--sem <name>', 'slots: NAME[=WEIGHT][/CAPACITY]; the first user names the capacity (repeatable)')
    .list('--guard <guard>', 'start only if this passes while everything is held: a file, or a condition (repeatable)')
    .option('--wait <duration>', 'give up after this time (default: no limit)')
    .option('--no-wait', 'give up at once if something is taken')
    .option('--ticket [ticket]', 'keep the place in line for 60 s when the time is up; with a ticket, go on with it')
    .option('--priority <n>', 'from -100 to 100, higher goes first')
    .option('--holder <id>', 'who holds it (default: a new name for every run)')
    .option('--reason <text>', 'why you hold it; waiters get to see it')
    .option('--on-lost <what>', 'when a hold is lost: term, kill or warn', 'term')
    .option('--grace <duration>', 'time between TERM and KILL, and for processes that the command leaves behind', '5s')
    .option('--ttl <duration>', 'the lease: how long the holds outlive this process if it vanishes', '15s')
    .option('-v, --verbose', 'report every change of a wait even if stderr is not a terminal')
    .option('-q, --quiet', 'do not report waiting')
    .duration('--poll', 'how often a guard checks what sends no events (default: 2s)');
  addInputOptions(command)
    .addHelpText('after', EXAMPLES)
    .action(async (argv: string[], _options: unknown, self: Command) => {
      const { requestOf } = await import('./run/request.ts');
      const options: RunOptions & GuardFlags = self.optsWithGlobals();
      const request = inOurWords(self, () => requestOf(argv, options));
      const { run } = await import('./run/run.ts');
      const { endLike } = await import('./run/ended.ts');
      const guarding = request.guards.length === 0 ? undefined : await guardingOf(self, request.guards, options);
      endLike(await run(request, process.env, guarding));
      // The store is closed, and all that was printed is written. Otherwise V8 would first give its memory back piece by piece.
      process.exit();
    });
}

/** Adds where to read more. */
function inOurWords<T>(command: Command, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw Failure.is(error, 'invalid') ? usageError(command, error.message) : error;
  }
}

async function guardingOf(command: Command, guards: readonly string[], flags: GuardFlags): Promise<Guarding> {
  const { readNamedGuard } = await import('./guard/guard-file.ts');
  const { Guarding } = await import('./run/guarding.ts');
  const read: Guard[] = [];
  for (const guard of guards) read.push(await readNamedGuard(command, guard, flags.env));
  return new Guarding(read, flags);
}
