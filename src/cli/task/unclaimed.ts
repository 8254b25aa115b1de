/** `signalbox task retry|requeue|forget`: tasks that no worker has. */
import type { Command } from '../command.ts';
import { spoken } from '../../core/index.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import type { ForgetOutcome, RequeueOutcome } from '../../runtime/tasks/unclaimed.ts';
import { given } from '../arguments.ts';
import { person } from '../holding.ts';
import { countArgument } from '../events.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { look } from '../read-only.ts';
import { complain, print, printable, printJson } from '../output.ts';
import { withBox } from '../store.ts';
import { taskId } from './arguments.ts';

type Outcome = RequeueOutcome | ForgetOutcome;

export function retry(command: Command): void {
  withIds(command)
    .option('--all', 'all tasks that have failed')
    .about(`try failed tasks again, with all their retries

Examples:
  signalbox task retry build-7
  signalbox task retry --all

The tasks are pending again, for any worker. A task that pauses before its next attempt can be claimed at once.
Exit code 1 if one of them has not failed.`)
    .action(async (ids: string[], flags: { all?: true }) => {
      await each(command, idsOf(ids, flags.all === true && 'failed'), (box, id) =>
        box.tasks.retry(id, { by: person() }),
      );
    });
}

export function requeue(command: Command): void {
  withIds(command)
    .about(`do tasks again, complete ones too

Example:
  signalbox task requeue build-7

The result is dropped. Exit code 1 if a worker has it: signalbox task release ID --force --reason TEXT
takes it from that worker.`)
    .action(async (ids: string[]) => {
      await each(command, idsOf(ids, false), (box, id) => box.tasks.requeue(id, { by: person() }));
    });
}

export function forget(command: Command): void {
  withIds(command)
    .oneOf('--status <status>', 'all tasks with this status', ['pending', 'complete', 'failed'])
    .about(`delete tasks that no worker has

Examples:
  signalbox task forget build-7
  signalbox task forget --status complete

The ids can be used again. A task is not deleted while a worker has it, or while another task that is not complete
depends on it (exit code 1). Finished tasks are deleted by themselves after seven days, unless task configure says
otherwise.`)
    .action(async (ids: string[], flags: { status?: 'pending' | 'complete' | 'failed' }) => {
      await each(command, idsOf(ids, flags.status ?? false), (box, id) => box.tasks.forget(id));
    });
}

export function configure(command: Command): void {
  command
    .about(`show or set how long finished tasks are kept

Examples:
  signalbox task configure
  signalbox task configure --keep 30d --keep-most 50000

The settings apply to every program on this store; the defaults are 7 days and 10000 tasks. Maintenance deletes them
(every 30 s in programs and workers, or signalbox maintain). A task stays while an incomplete task depends on it: a
failed one may be tried again.`)
    .duration('--keep', 'forget finished tasks after this time, such as 30d')
    .option('--keep-most <number>', 'keep at most this many finished tasks: the latest', countArgument)
    .action(async ({ keep, keepMost }: { keep?: number; keepMost?: number }) => {
      const change = given({ keepMs: keep, keepMost });
      const kept =
        Object.keys(change).length === 0
          ? (await look(command, (box) => box.tasks.retention())).found
          : await withBox(command, (box) => box.tasks.configure(change));
      command.answer(kept, `finished tasks are kept for ${spoken(kept.keepMs)}, and at most ${kept.keepMost} of them`);
    });
}

function withIds(command: Command): Command {
  return command.argument('[id...]', 'of the tasks');
}

type Wanted = (box: Signalbox) => Promise<readonly string[]>;

function idsOf(ids: readonly string[], all: 'pending' | 'complete' | 'failed' | false): Wanted {
  if (ids.length > 0 && all === false) return () => Promise.resolve(ids.map(taskId));
  if (ids.length === 0 && all !== false)
    return async (box) => (await box.tasks.list({ status: all })).map(({ id }) => id);
  const what = all === false ? 'the id of a task is missing' : 'give ids, or say which of all tasks, not both';
  throw new CliExit(EXIT.usage, what);
}

async function each(
  command: Command,
  wanted: Wanted,
  act: (box: Signalbox, id: string) => Promise<Outcome>,
): Promise<void> {
  await withBox(command, async (box, signal) => {
    let refused = 0;
    for (const id of await wanted(box)) {
      signal.throwIfAborted();
      const outcome = await act(box, id);
      const isDone = outcome.kind === 'requeued' || outcome.kind === 'forgotten';
      if (!isDone) refused += 1;
      const { kind, ...details } = outcome;
      if (command.isJson) printJson({ task: id, outcome: kind, ...details });
      else (isDone ? print : complain)(`${isDone ? '' : 'signalbox: '}${printable(`task/${id}: ${told(outcome)}`)}`);
    }
    if (refused > 0) throw new CliExit(EXIT.no, '');
  });
}

function told(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'requeued':
      return outcome.was === 'pending' ? 'can be claimed at once' : `was ${outcome.was}, is pending again`;
    case 'forgotten':
      return 'forgotten';
    case 'missing':
      return 'there is no such task';
    case 'running':
      return `${outcome.owner} has it; nothing was changed`;
    case 'unchanged':
      return outcome.status === 'pending'
        ? 'it is pending already'
        : 'it is complete, not failed; task requeue has it done again';
    case 'needed':
      return `tasks that are not complete depend on it: ${outcome.by.join(', ')}; nothing was changed`;
  }
}
