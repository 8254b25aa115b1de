/** `signalbox pipeline forget`: deletes a pipeline that has ended. */
import type { Command } from '../command.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { printable } from '../output.ts';
import { withBox } from '../store.ts';
import { pipelineId } from './arguments.ts';
import { noSuchPipeline } from './drive.ts';

export function forget(command: Command): void {
  command
    .about(`delete a pipeline that has ended, and free its id

Examples:
  signalbox pipeline forget release-7
  signalbox pipeline list --status done --names | xargs -n1 signalbox pipeline forget

Exit code 1 if there is no such pipeline, or if it has not ended: cancel it first.`)
    .argument('<id>', 'of the pipeline', pipelineId)
    .action(async (id: string) => {
      await withBox(command, async (box) => {
        if (!(await box.pipelines.forget(id))) {
          const record = await box.pipelines.show(id);
          if (record === undefined) throw noSuchPipeline(id);
          const message = `pipeline/${id}: it is ${record.state} and has not ended; cancel it first`;
          throw new CliExit(EXIT.no, message, { outcome: record.state });
        }
        command.answer({ pipeline: id, outcome: 'forgotten' }, printable(`pipeline/${id}: deleted`));
      });
    });
}
