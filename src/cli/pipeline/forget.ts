/** `signalbox pipeline forget`: deletes a pipeline that has ended. */
import type { Command } from 'commander';
import { CliExit, EXIT } from '../exit-code.ts';
import { print, printable, printJson } from '../output.ts';
import { isJson, withBox } from '../store.ts';
import { pipelineId } from './arguments.ts';
import { noSuchPipeline } from './drive.ts';

export function addForget(command: Command): void {
  command
    .description('delete a pipeline that has ended, and free its id')
    .argument('<id>', 'of the pipeline', pipelineId)
    .addHelpText(
      'after',
      `
Examples:
  signalbox pipeline forget release-7
  signalbox pipeline list --status done --names | xargs -n1 signalbox pipeline forget

Exit code 1 if there is no such pipeline, or if it has not ended: cancel it first.`,
    )
    .action(async (id: string) => {
      await withBox(command, async (box) => {
        if (!(await box.pipelines.forget(id))) {
          const record = await box.pipelines.show(id);
          if (record === undefined) throw noSuchPipeline(id);
          const message = `pipeline/${id}: it is ${record.state} and has not ended; cancel it first`;
          throw new CliExit(EXIT.no, message, { outcome: record.state });
        }
        if (isJson(command)) printJson({ pipeline: id, outcome: 'forgotten' });
        else print(printable(`pipeline/${id}: deleted`));
      });
    });
}
