/** `signalbox pipeline drive --all`: a standing driver, which takes over every pipeline that no process drives. */
import type { Command } from '../command.ts';
import { canBeDriven } from '../../core/index.ts';
import type { DriveAllOptions } from '../../runtime/pipelines/terms.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import { given } from '../arguments.ts';
import { CliExit } from '../exit-code.ts';
import { printJson, say } from '../output.ts';
import { withBox } from '../store.ts';
import { GRACE } from './arguments.ts';
import { standByTold } from './drive.ts';
import { type Show, showOneOfMany } from './show.ts';

export function drive(command: Command): void {
  command
    .about(`stand by, and drive every pipeline that no process drives

Examples:
  signalbox pipeline drive --all
  signalbox pipeline drive --all --json | jq -r 'select(.type == "change") | "\\(.pipeline) \\(.state)"'

It drives every pipeline without a driver, now and later: one that was only started, or whose driver died, was stopped
or left it blocked. While another process drives a pipeline, it stands by. Several standing drivers may run at once:
one of them gets each pipeline.

It leaves a pipeline alone, and says so, if it waits for a person (see pipeline list), if its phases are functions of
a program, or if its directory does not exist here. To keep a pipeline from going on: pipeline cancel ID.

Ctrl-C stops the running commands and leaves the pipelines to be resumed; a second Ctrl-C kills the commands.

Exit codes: 0 ended by Ctrl-C or TERM · 64 usage · 69 store unreachable`)
    .requiredOption('--all', 'all pipelines of the store (for one: signalbox pipeline resume ID --wait)')
    .duration(...GRACE)
    .action(async ({ grace }: { grace?: number }) => {
      const hurry = new AbortController();
      const work = (box: Signalbox, signal: AbortSignal): Promise<void> =>
        driveAll(command, box, { ...given({ graceMs: grace }), signal, hurrying: hurry.signal });
      await withBox(command, work, { maintains: true }, hurry).catch((error: unknown) => {
        // A standing driver is meant to end by a signal, so that is no failure.
        if (error instanceof CliExit && error.message === '' && !hurry.signal.aborted) return;
        throw error;
      });
    });
}

async function driveAll(command: Command, box: Signalbox, options: DriveAllOptions): Promise<void> {
  const shows = new Map<string, Show>();
  const showOf = (id: string): Show => {
    const show = shows.get(id) ?? showOneOfMany(command, id);
    shows.set(id, show);
    return show;
  };
  if (!command.isJson) say('driving every pipeline that no process drives; Ctrl-C ends that');
  await box.pipelines.driveAll({
    ...options,
    onChange: (record) => {
      showOf(record.id).changed(record);
      if (canBeDriven(record)) return;
      showOf(record.id).over(record);
      // The next news of it may come from another driver, much later.
      shows.delete(record.id);
    },
    onOutput: (id, phase, text) => showOf(id).printed(phase, text),
    onMessage: (id, phase, message) => showOf(id).message(phase, message),
    onStandBy: (id, other) => showOf(id).say(standByTold(id, other)),
    onSkipped: (id, why) => {
      if (command.isJson) printJson({ type: 'skipped', pipeline: id, why });
      else say(`pipeline/${id}: not driven here, because ${why}`);
    },
    onTrouble: (id, error) => say(`pipeline/${id}: ${error.message}; trying again`),
  });
  for (const show of shows.values()) show.over(undefined);
}
