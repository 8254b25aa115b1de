/** `signalbox task show` and `task list`. */
import { type Command, Option } from 'commander';
import { blockerTold, type TaskStatus } from '../../core/index.ts';
import type { TaskView } from '../../runtime/tasks/reading.ts';
import { spoken } from '../../core/index.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { look } from '../looking.ts';
import { paintFor, print, printable, printJson, printName, screen } from '../output.ts';
import { isJson } from '../store.ts';
import { type Layout, layoutFor, tableLines } from '../table.ts';
import { taskId } from './arguments.ts';

const STATUSES: readonly TaskStatus[] = ['pending', 'running', 'complete', 'failed'];

export function addLooking(command: Command): void {
  show(command.command('show'));
  list(command.command('list'));
}

function show(command: Command): void {
  command
    .description('show a task: its data, its status and its owner')
    .argument('<id>', 'of the task', taskId)
    .addHelpText(
      'after',
      '\nExamples:\n  signalbox task show build-7\n  signalbox task show build-7 --json | jq .status\n\nExit code 1 if there is no such task.',
    )
    .action(async (id: string) => {
      const { found } = await look(command, (box) => box.tasks.show(id));
      if (found === undefined) throw new CliExit(EXIT.no, `task/${id}: there is no such task`);
      if (isJson(command)) return printJson(taskJson(found));
      for (const line of taskLines(found)) print(line);
    });
}

function list(command: Command): void {
  command
    .description('list all tasks in the order in which they were published')
    .addOption(new Option('--status <status>', 'only tasks with this status').choices(STATUSES))
    .option('--names', 'print only the ids, one per line')
    .addHelpText('after', '\nExamples:\n  signalbox task list\n  signalbox task list --status failed --names')
    .action(async ({ status, names }: { status?: TaskStatus; names?: true }) => {
      const options = status === undefined ? {} : { status };
      const { found, missing } = await look(command, (box) => box.tasks.list(options));
      if (isJson(command)) return printJson({ tasks: found.map(taskJson) });
      if (names) return found.forEach(({ id }) => printName(id));
      if (missing !== undefined) return print(printable(missing));
      if (found.length === 0) return print(status === undefined ? 'There are no tasks.' : `No task is ${status}.`);
      for (const line of listLines(found, layoutFor(screen(), paintFor(screen())))) print(line);
    });
}

/** Fields are only ever added; docs/cli.md lists them. */
export function taskJson(view: TaskView): object {
  const { id, status, data, capabilities, priority, dependsOn, retries, blockedBy, owner, token, isLeased } = view;
  return {
    task: id,
    status,
    data: data ?? null,
    capabilities,
    priority,
    dependsOn,
    retries,
    blockedBy,
    owner: owner ?? null,
    token: token ?? null,
    isLeased,
    attempts: view.attempts,
    result: view.result ?? null,
    reason: view.reason ?? null,
    publishedAt: time(view.publishedAt),
    publishedBy: view.publishedBy ?? null,
    claimedAt: time(view.claimedAt),
    endedAt: time(view.endedAt),
  };
}

function time(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}

export function listLines(tasks: readonly TaskView[], layout: Layout): string[] {
  const rows = tasks.map((task) => ({
    cells: [task.id, task.status, String(task.priority), task.owner ?? '', String(task.attempts), noteOf(task)],
  }));
  return tableLines(['TASK', 'STATUS', 'PRIORITY', 'OWNER', 'ATTEMPTS', 'NOTE'], rows, layout);
}

function noteOf({ status, owner, isLeased, blockedBy, reason, capabilities }: TaskView): string {
  const notes = [
    blockedBy.length === 0 ? '' : `blocked: ${blockedBy.map(blockerTold).join('; ')}`,
    status === 'running' && owner !== undefined && !isLeased ? 'its owner has no lease' : '',
    status === 'failed' || status === 'pending' ? (reason ?? '') : '',
    capabilities.length === 0 ? '' : `needs ${capabilities.join(', ')}`,
  ];
  return notes.filter((note) => note !== '').join(' · ');
}

function taskLines(task: TaskView): string[] {
  const ago = (ms: number | undefined): string => (ms === undefined ? '' : ` (${spoken(Date.now() - ms)} ago)`);
  const by = task.publishedBy === undefined ? '' : ` by ${task.publishedBy}`;
  const facts: (readonly [string, string])[] = [
    ['task', task.id],
    ['status', `${task.status}${task.blockedBy.length > 0 ? ', blocked' : ''}${ago(task.endedAt)}`],
    ['blocked by', task.blockedBy.map(blockerTold).join('; ')],
    [
      'owner',
      task.owner === undefined ? '' : `${task.owner}, token ${task.token}${leaseTold(task)}${ago(task.claimedAt)}`,
    ],
    [
      'published',
      task.publishedAt === undefined ? '' : `${new Date(task.publishedAt).toISOString()}${by}${ago(task.publishedAt)}`,
    ],
    ['attempts', `${task.attempts}${retriesTold(task)}`],
    ['priority', task.priority === 0 ? '' : String(task.priority)],
    ['needs', task.capabilities.join(', ')],
    ['after', task.dependsOn.join(', ')],
    ['data', task.data === undefined ? '' : JSON.stringify(task.data)],
    ['result', task.result === undefined ? '' : JSON.stringify(task.result)],
    ['reason', task.reason ?? ''],
  ];
  return facts.filter(([, text]) => text !== '').map(([name, text]) => `${name.padEnd(12)}${printable(text)}`);
}

function retriesTold({ retries }: TaskView): string {
  if (retries === 0) return '';
  return `, with ${retries === 1 ? '1 retry' : `${retries} retries`} if it fails`;
}

function leaseTold({ status, isLeased }: TaskView): string {
  return status === 'running' && !isLeased
    ? ', without a lease: if that worker is gone, free the task with task release --force'
    : '';
}
