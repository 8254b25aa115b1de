/** `signalbox run`: acquire all or nothing, run a command, release. */
import type { Command } from 'commander';

const EXAMPLES = `
Examples:
  signalbox run --lock main-branch -- git push          one push at a time
  signalbox run --lock docs:shared -- make check        together with other readers, but with no writer
  signalbox run --sem agents/4 -- ./agent.sh            at most four at once; $SIGNALBOX_SLOT_AGENTS is 0 to 3
  signalbox run --sem ram=8/32 --wait 10m -- make -j8   eight of 32 slots, or exit 75 after ten minutes
  signalbox run --lock db --lock cache --no-wait -- ./migrate.sh

The command gets SIGNALBOX_TOKEN, SIGNALBOX_SLOT_NAME and more in its environment, and a run
inside it re-enters these holds.

Exit codes: the command's own · 128+n ended by signal n · 126 not executable · 127 not found
            64 usage · 69 store unreachable · 75 not acquired · 76 lost while running`;

/** Loads modules only in the action, so that `--help` and mistakes are fast. */
export function define(command: Command): void {
  const all = (value: string, before: readonly string[]): readonly string[] => [...before, value];
  const none: readonly string[] = [];
  command
    .usage('[options] -- COMMAND [ARGUMENT…]')
    .argument('<command...>', 'what to run, with its arguments')
    .passThroughOptions()
    .option('--lock <name>', 'a lock; NAME:shared allows other readers (repeatable)', all, none)
    .option(
      '--sem <name>',
      'slots: NAME[=WEIGHT][/CAPACITY]; the first user names the capacity (repeatable)',
      all,
      none,
    )
    .option('--wait <duration>', 'give up after this time (default: no limit)')
    .option('--no-wait', 'give up at once if something is taken')
    .option('--priority <n>', 'from -100 to 100, higher goes first')
    .option('--holder <id>', 'who holds it (default: a new name for every run)')
    .option('--reason <text>', 'why you hold it; waiters get to see it')
    .option('--on-lost <what>', 'when a hold is lost: term, kill or warn', 'term')
    .option('--grace <duration>', 'time between TERM and KILL, and for processes that the command leaves behind', '5s')
    .option('--ttl <duration>', 'the lease: how long the holds outlive this process if it vanishes', '15s')
    .option('-v, --verbose', 'report waiting even if stderr is not a terminal')
    .option('-q, --quiet', 'do not report waiting')
    .addHelpText('after', EXAMPLES)
    .action(async (argv: string[], _options: unknown, self: Command) => {
      const { requestOf } = await import('./run/request.ts');
      const request = requestOf(argv, self.optsWithGlobals());
      const { run } = await import('./run/run.ts');
      const { endLike } = await import('./run/ended.ts');
      endLike(await run(request, process.env));
    });
}
