/** `signalbox import DIR`: restores what `export` wrote. */
import type { Command } from './command.ts';
import { CliExit, EXIT } from './exit-code.ts';
import { counted } from './output.ts';
import { withBox } from './store.ts';

const EXAMPLES = `
Examples:
  signalbox import backup/
  signalbox import backup/ --store file:/srv/signalbox

Restored holds are detached and keep their tokens: renew them, or they are stale after their time (60 s unless
the file says otherwise). Tasks are pending or finished as they were; pipelines go on with pipeline resume.
Nothing is overwritten: if anything in the files is held or waited for here, or exists already, nothing is
imported (exit code 1). A malformed file is refused before anything is written (65).`;

export function define(command: Command): void {
  command
    .argument('<dir>', 'the directory that export wrote')
    .addHelpText('after', EXAMPLES)
    .action(async (dir: string) => {
      const outcome = await withBox(command, (box) => box.loadState(dir));
      if (outcome.kind === 'refused') {
        const { conflicts, loaded } = outcome;
        const lines = conflicts.map(({ resource, why }) => `  ${resource}: ${why}`);
        const what = loaded === 0 ? 'nothing was imported' : `only ${loaded} resources were imported`;
        throw new CliExit(EXIT.no, [`${what}:`, ...lines].join('\n'), { conflicts, loaded });
      }
      const { kind: _, ...loaded } = outcome;
      command.answer(loaded, `imported ${counted(loaded.locks, loaded.semaphores, loaded.holds, loaded)}`);
    });
}
