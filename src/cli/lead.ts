/** `signalbox lead`: a command that runs on one machine of many, and moves when that machine dies. */
import type { Command } from './command.ts';

const EXAMPLES = `
Examples:
  signalbox lead --name scheduler -- ./scheduler.sh        run this on every machine: it runs on one of them
  signalbox lead --name cron --holder host-7 -- ./cron.sh

The command runs while this process leads. If it loses the lead, it stops the command (TERM, then KILL after --grace)
and waits for its turn again. When the command ends by itself, this process resigns and exits with its exit code.

On one machine, the next command starts only when the old one has ended. On another machine, it starts when --ttl is
over: the old one has ended by then if --grace is less than a tenth of --ttl, unless a person broke lock/lead:NAME.

The command gets SIGNALBOX_TOKEN: the epoch, which is larger for every new leader. Pass it along with what the command
writes, so that the receiver can refuse an earlier leader. Who leads: signalbox who lock/lead:NAME

Exit codes: the command's own · 128+n ended by signal n · 126 not executable · 127 not found · 64 usage`;

export function define(command: Command): void {
  command
    .usage('--name NAME [options] -- COMMAND [ARGUMENT…]')
    .argument('<command...>', 'what to run, with its arguments')
    .passThroughOptions()
    .requiredOption('--name <name>', 'what to lead; of all processes that give the same name, one leads')
    .option('--holder <id>', 'the beginning of the name that others see; the end is new for every turn')
    .option('--reason <text>', 'why; waiters get to see it')
    .option('--grace <duration>', 'time between TERM and KILL when the lead is lost (default: a fifteenth of --ttl)')
    .option('--ttl <duration>', 'how long others wait for a leader that vanished', '15s')
    .option('-v, --verbose', 'report waiting even if stderr is not a terminal')
    .option('-q, --quiet', 'do not report waiting')
    .addHelpText('after', EXAMPLES)
    .action(async (argv: string[], _options: unknown, self: Command) => {
      const { leadRequestOf, leadWith } = await import('./run/lead.ts');
      const { endLike } = await import('./run/ended.ts');
      endLike(await leadWith(leadRequestOf(argv, self.optsWithGlobals()), process.env));
    });
}
