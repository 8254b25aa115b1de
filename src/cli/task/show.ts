/** `signalbox task show` and `task list`. */
import type { Command } from '../command.ts';
import { blockerTold, spoken, type TaskStatus } from '../../core/index.ts';
import type { SurveyedSession } from '../../runtime/observe/survey/index.ts';
import type { TaskView } from '../../runtime/tasks/reading.ts';
import { given } from '../arguments.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { printList } from '../listing.ts';
import { look } from '../read-only.ts';
import { countArgument } from '../events.ts';
import { taskJson } from '../../json/task.ts';
import { joined, print, printable, printJson, tell } from '../output.ts';
import { factLines, type Layout, tableLines } from '../table.ts';
import { taskId } from './arguments.ts';
import { isOwnerGone, OWNER_GONE, sessionsOfOwners } from './owner.ts';

const STATUSES: readonly TaskStatus[] = ['pending', 'running', 'complete', 'failed'];

export function show(command: Command): void {
  command
    .about(`show a task: its data, its status and its owner

Examples:
  signalbox task show build-7
  signalbox task show build-7 --json | jq .status

Exit code 1 if there is no such task.`)
    .argument('<id>', 'of the task', taskId)
    .action(async (id: string) => {
      const { found } = await look(command, async (box) => {
        const task = await box.tasks.show(id);
        return { task, sessions: task === undefined || command.isJson ? [] : await sessionsOfOwners(box, [task]) };
      });
      const { task, sessions } = found;
      if (task === undefined) throw new CliExit(EXIT.no, `task/${id}: there is no such task`);
      if (command.isJson) return printJson(taskJson(task));
      for (const line of taskLines(task, sessions)) print(line);
    });
}

export function list(command: Command): void {
  command
    .about(`list all tasks in the order in which they were published

Examples:
  signalbox task list
  signalbox task list --status failed --names
  signalbox task list --limit 100 --after build-1099      the next hundred

Without --limit and --after all tasks, in the order in which they were published.`)
    .oneOf('--status <status>', 'only tasks with this status', STATUSES)
    .option('--names', 'print only the ids, one per line')
    .option('--limit <number>', 'at most this many, in the order of their ids', countArgument)
    .option('--after <id>', 'only ids that come after this one: the next page', taskId)
    .action(async (flags: { status?: TaskStatus; names?: true; limit?: number; after?: string }) => {
      const { status, limit, after, names } = flags;
      const options = given({ status, limit, after });
      // A full page may be the last one; the next is empty then.
      const nextOf = (found: readonly TaskView[]): string | null =>
        limit === undefined || found.length < limit ? null : (found.at(-1)?.id ?? null);
      const isForPeople = !names && !command.isJson;
      let sessions: readonly SurveyedSession[] = [];
      const found = await printList(command, {
        names,
        look: async (box) => {
          const tasks = await box.tasks.list(options);
          if (isForPeople) sessions = await sessionsOfOwners(box, tasks);
          return tasks;
        },
        all: (tasks) => tasks,
        name: ({ id }) => id,
        json: (tasks) => ({ tasks: tasks.map(taskJson), next: nextOf(tasks) }),
        nothing: status === undefined ? 'There are no tasks.' : `No task is ${status}.`,
        lines: (tasks, layout) => listLines(tasks, sessions, layout),
      });
      const next = nextOf(found);
      if (next !== null && isForPeople) tell(`signalbox: the next page: --after ${printable(next)}`);
    });
}

export function listLines(tasks: readonly TaskView[], sessions: readonly SurveyedSession[], layout: Layout): string[] {
  const rows = tasks.map((task) => {
    const note = noteOf(task, isOwnerGone(task, sessions));
    return { cells: [task.id, task.status, String(task.priority), task.owner ?? '', String(task.attempts), note] };
  });
  return tableLines(['TASK', 'STATUS', 'PRIORITY', 'OWNER', 'ATTEMPTS', 'NOTE'], rows, layout);
}

function noteOf({ status, owner, isLeased, blockedBy, reason, capabilities }: TaskView, isGone: boolean): string {
  return joined([
    isGone ? OWNER_GONE : '',
    blockedBy.length === 0 ? '' : `blocked: ${blockedBy.map(blockerTold).join('; ')}`,
    status === 'running' && owner !== undefined && !isLeased ? 'its owner has no lease' : '',
    status === 'failed' || status === 'pending' ? (reason ?? '') : '',
    capabilities.length === 0 ? '' : `needs ${capabilities.join(', ')}`,
  ]);
}

export function taskLines(task: TaskView, sessions: readonly SurveyedSession[], now = Date.now()): readonly string[] {
  const ago = (ms: number | undefined): string => (ms === undefined ? '' : ` (${spoken(now - ms)} ago)`);
  const by = task.publishedBy === undefined ? '' : ` by ${task.publishedBy}`;
  const facts: (readonly [string, string])[] = [
    ['task', task.id],
    ['status', `${task.status}${task.blockedBy.length > 0 ? ', blocked' : ''}${ago(task.endedAt)}`],
    ['worker', isOwnerGone(task, sessions) ? OWNER_GONE : ''],
    ['blocked by', task.blockedBy.map(blockerTold).join('; ')],
    [
      'owner',
      task.owner === undefined ? '' : `${task.owner}, token ${task.token}${leaseTold(task)}${ago(task.claimedAt)}`,
    ],
    [
      'published',
      task.publishedAt === undefined ? '' : `${new Date(task.publishedAt).toISOString()}${by}${ago(task.publishedAt)}`,
    ],
    ['attempts', `${task.attempts}${attemptsTold(task)}`],
    ['retries', retriesTold(task)],
    ['next try', task.retryAt === undefined ? '' : `in ${spoken(Math.max(0, task.retryAt - now))}`],
    ['priority', task.priority === 0 ? '' : String(task.priority)],
    ['needs', task.capabilities.join(', ')],
    ['after', task.dependsOn.join(', ')],
    ['data', task.data === undefined ? '' : JSON.stringify(task.data)],
    ['result', task.result === undefined ? '' : JSON.stringify(task.result)],
    ['reason', task.reason ?? ''],
  ];
  return factLines(facts).map(printable);
}

function attemptsTold({ failures, losses, lossLimit }: TaskView): string {
  const lost = losses === 0 ? '' : `${losses} of ${lossLimit} lost with their worker`;
  const told = joined([failures === 0 ? '' : `${failures} failed`, lost], ', ');
  return told === '' ? '' : ` (${told})`;
}

function retriesTold({ retries, failures, backoffMs, status }: TaskView): string {
  if (retries === 0) return '';
  const pauses =
    backoffMs === 0 ? '' : `, ${spoken(backoffMs)} after the first failure and twice as long after each later one`;
  const isOpen = status === 'pending' || status === 'running';
  return isOpen ? `${Math.max(0, retries - failures)} of ${retries} left${pauses}` : `${retries}${pauses}`;
}

function leaseTold({ status, isLeased }: TaskView): string {
  return status === 'running' && !isLeased
    ? ', without a lease: if that worker is gone, free the task with task release --force'
    : '';
}
