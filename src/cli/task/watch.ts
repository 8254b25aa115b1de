/** `signalbox task watch`: prints what happens to tasks, as it happens. */
import type { Command } from '../command.ts';
import type { SignalboxEvent } from '../../runtime/observe/event-types.ts';
import { countArgument, followEvents, timeOf } from '../events.ts';
import { paintFor, printable, screen } from '../output.ts';
import { taskId } from './arguments.ts';

export function watch(command: Command): void {
  command
    .about(`print what happens to tasks, one event per line

Examples:
  signalbox task watch
  signalbox task watch build-7 -n 1
  signalbox task watch --json | jq -r 'select(.type == "task:failed") | .task'`)
    .argument('[id]', 'only of this task', taskId)
    .option('-n, --count <number>', 'stop after this many events', countArgument)
    .duration('--for', 'stop after this time')
    .action((id: string | undefined, flags: { count?: number; for?: number }) =>
      followEvents(command, 'task:*', flags, (event) => {
        if (id !== undefined && event.type !== 'resync' && taskId(event.resource) !== id) return false;
        command.answer(jsonOf(event), () => lineOf(event));
        return true;
      }),
    );
}

function jsonOf({ type, resource, holder, at, id, ...details }: SignalboxEvent): object {
  return {
    type,
    task: type === 'resync' ? null : taskId(resource),
    holder,
    at: timeOf(at),
    ...(id !== undefined && { id }),
    ...details,
  };
}

function lineOf({ type, resource, holder, at, id: _, ...details }: SignalboxEvent): string {
  const paint = paintFor(screen());
  if (type === 'resync') return `${timeOf(at)}  ${paint('yellow', 'resync')}  some events were missed; see task list`;
  const told = Object.entries(details).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  const words = [printable(type.slice('task:'.length)).padEnd(9), printable(taskId(resource)), printable(holder)];
  return `${timeOf(at)}  ${words.join('  ')}  ${paint('dim', printable(told.join(' ')))}`.trimEnd();
}
