/** `signalbox pipeline cancel|forget`: ends a pipeline for good, in any state; deletes one that has ended. */
import type { Command } from '../command.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { print, printable, printJson } from '../output.ts';
import { askedBy, pipelineId } from './arguments.ts';
import { noSuchPipeline } from './drive.ts';
import { pipelineJson } from '../../json/pipeline.ts';

export function cancel(command: Command): void {
  command
    .about(`end a pipeline for good

Examples:
  signalbox pipeline cancel release-7
  signalbox pipeline cancel release-7 --reason 'superseded by release-8'

If one of its commands runs, the driver stops it first, and cancel waits for that.
Exit code 1 if there is no such pipeline, or if it was over before.`)
    .argument('<id>', 'of the pipeline', pipelineId)
    .option('--reason <text>', 'why; status shows it later', '')
    .option('--holder <id>', 'who cancels it (default: $SIGNALBOX_HOLDER)')
    .inStore(async ({ box, signal }, id: string, { reason, holder }: { reason: string; holder?: string }) => {
      const by = askedBy(holder);
      const record = await box.pipelines.cancel(id, { by, reason, signal });
      if (record === undefined) throw noSuchPipeline(id);
      const isOurs = record.state === 'cancelled' && record.cancel?.by === by;
      if (command.isJson) printJson(pipelineJson(record));
      else if (isOurs) print(printable(`pipeline/${id}: cancelled`));
      if (isOurs) return;
      throw new CliExit(EXIT.no, `pipeline/${id}: it is ${record.state} already`, { outcome: record.state });
    });
}

export function forget(command: Command): void {
  command
    .about(`delete a pipeline that has ended, and free its id

Examples:
  signalbox pipeline forget release-7
  signalbox pipeline list --status done --names | xargs -n1 signalbox pipeline forget

Exit code 1 if there is no such pipeline, or if it has not ended: cancel it first.`)
    .argument('<id>', 'of the pipeline', pipelineId)
    .inStore(async ({ box }, id: string) => {
      if (!(await box.pipelines.forget(id))) {
        const record = await box.pipelines.show(id);
        if (record === undefined) throw noSuchPipeline(id);
        const message = `pipeline/${id}: it is ${record.state} and has not ended; cancel it first`;
        throw new CliExit(EXIT.no, message, { outcome: record.state });
      }
      command.answer({ pipeline: id, outcome: 'forgotten' }, printable(`pipeline/${id}: deleted`));
    });
}
