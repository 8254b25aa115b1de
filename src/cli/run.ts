/** `signalbox run`: acquire all or nothing, run a command, release. */
import type { Command } from 'commander';

const EXAMPLES = `
Examples:
  signalbox run --lock main-branch -- git push          one push at a time
  signalbox run --lock docs:shared -- make check        readers side by side, no writer meanwhile
  signalbox run --sem agents/4 -- ./agent.sh            at most four at once; $SIGNALBOX_SLOT_AGENTS is 0 to 3
  signalbox run --sem ram=8/32 --wait 10m -- make -j8   eight of 32 slots, or exit 75 after ten minutes
  signalbox run --lock db --lock cache --no-wait -- ./migrate.sh

The command gets SIGNALBOX_TOKEN, SIGNALBOX_SLOT_NAME and more in its environment, and a run
inside it has what this one has.

Exit codes: the command's own · 128+n ended by signal n · 126 not executable · 127 not found
            64 usage · 69 store unreachable · 75 not acquired · 76 lost while running`;

/** All loading is left to the action, so that `--help` and mistakes cost nothing. */
export function define(command: Command): void {
  const all = (value: string, before: readonly string[]): readonly string[] => [...before, value];
  const none: readonly string[] = [];
  command
    .usage('[options] -- COMMAND [ARGUMENT…]')
    .argument('<command...>', 'what to run, with its arguments')
    .passThroughOptions()
    .option('--lock <name>', 'a lock; NAME:shared to read beside other readers (repeatable)', all, none)
    .option(
      '--sem <name>',
      'slots: NAME[=WEIGHT][/CAPACITY]; the first user names the capacity (repeatable)',
      all,
      none,
    )
    .option('--wait <duration>', 'give up after this time; without it, wait as long as it takes')
    .option('--no-wait', 'give up at once if something is taken')
    .option('--priority <n>', 'from -100 to 100, higher goes first')
    .option('--holder <id>', 'who holds it; by default one of its own for every run')
    .option('--reason <text>', 'why, told to those who wait')
    .option('--on-lost <what>', 'when a hold is lost: term, kill or warn', 'term')
    .option('--grace <duration>', 'between TERM and KILL, and for processes the command leaves behind', '5s')
    .option('--ttl <duration>', 'the lease: how long the holds outlive this process when it is not heard of', '15s')
    .option('-v, --verbose', 'tell about waiting even where stderr is no terminal')
    .option('-q, --quiet', 'tell nothing about waiting')
    .addHelpText('after', EXAMPLES)
    .action(async (argv: string[], _options: unknown, self: Command) => {
      const { requestOf } = await import('./run/request.ts');
      const request = requestOf(argv, self.optsWithGlobals());
      const { run } = await import('./run/run.ts');
      const { endLike } = await import('./run/ended.ts');
      endLike(await run(request, process.env));
    });
}
