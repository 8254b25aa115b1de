/** `signalbox task publish`. */
import type { Command } from '../command.ts';
import type { Json, TaskStatus } from '../../core/index.ts';
import { given, numberArgument } from '../arguments.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { jsonArgument, taskId } from './arguments.ts';

interface Flags {
  readonly data?: Json;
  readonly capability: readonly string[];
  readonly dependsOn: readonly string[];
  readonly priority?: number;
  readonly retries?: number;
  readonly backoff?: number;
  readonly lossLimit?: number;
  readonly holder?: string;
  readonly sensitive?: true;
}

export function publish(command: Command): void {
  command
    .about(`publish a task for workers to claim

Examples:
  signalbox task publish build-7 --data '{"commit":"1a2b3c"}'
  signalbox task publish scan --data @scan.json --capability code-analysis:rust
  signalbox task publish upload --data - --retries 5 --backoff 10s < upload.json
  signalbox task publish deploy --data '{}' --depends-on build-7 --depends-on scan --priority 10

The options become part of the data. Exit code 1 if the id is taken: the existing task is not changed. signalbox task
forget ID makes the id free again.`)
    .argument('<id>', 'of the new task', taskId)
    .option('--data <json>', 'the data for the worker: JSON, @FILE, or - for stdin (default: {})', jsonArgument)
    .list('--capability <name>', 'only workers with this capability may claim it (repeatable)')
    .option('--priority <number>', 'from -100 to 100; higher goes first', numberArgument)
    .list('--depends-on <id>', 'cannot be claimed before this task is complete (repeatable)')
    .option('--retries <number>', 'how often to try it again after it has failed (default: 0)', numberArgument)
    .duration('--backoff', 'pause before the first retry, twice as long before each later one')
    .option('--loss-limit <number>', 'it fails once this many workers died over it (default: 3)', numberArgument)
    .option('--sensitive', 'the witness enters only hashes of its data, result and reasons')
    .option('--holder <id>', 'who publishes it (default: $SIGNALBOX_HOLDER)')
    .inStore(async ({ box }, id: string, flags: Flags) => {
      const { data = {}, capability, dependsOn, priority, retries } = flags;
      const { backoff: backoffMs, lossLimit, sensitive } = flags;
      const by = flags.holder ?? (process.env['SIGNALBOX_HOLDER'] || undefined);
      const options = given({
        by,
        priority,
        retries,
        backoffMs,
        lossLimit,
        sensitive,
        capabilities: capability.length > 0 ? capability : undefined,
        dependsOn: dependsOn.length > 0 ? dependsOn.map(taskId) : undefined,
      });
      const outcome = await box.tasks.publish(id, data, options);
      if (outcome.kind === 'exists') {
        throw exists(id, outcome.status);
      }
      command.answer({ task: id, outcome: outcome.kind }, `task/${id}: published`);
    });
}

/** Says that the data and options of a second publication are dropped: those of the first may differ. */
function exists(id: string, status: TaskStatus): CliExit {
  const next = status === 'running' ? '' : `; signalbox task forget ${id} makes room for another one`;
  const message = `task/${id}: there is one already, which is ${status}; its data, priority and other options stay as they were${next}`;
  return new CliExit(EXIT.no, message, { task: id, outcome: 'exists', status });
}
