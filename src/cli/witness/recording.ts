/** `signalbox witness tail|show|record|export`: the record in the store. */
import { type Command, InvalidArgumentError } from '../command.ts';
import type { Json, WitnessEntry } from '../../core/index.ts';
import { commandFits, type WitnessFilter } from '../../runtime/witness/filter.ts';
import { TRIMMED_BEFORE_READ } from '../../runtime/witness/log.ts';
import { given, numberArgument } from '../arguments.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { complain, print, printJson } from '../output.ts';
import { jsonArgument } from '../task/arguments.ts';
import { exportOf, exportTo } from './segment.ts';
import { Story, storyLines } from './story.ts';

/** The same fields as the filter, with times that are durations before now. */
type FilterFlags = WitnessFilter;

function addFilters(command: Command): Command {
  return command
    .option('--actor <name>', 'only what this holder, member or user did')
    .option('--event <pattern>', "only entries with this event, or all of a kind: 'task:*'")
    .option('--trace <id>', 'only what belongs to this trace')
    .option('--component <name>', 'only what this component did: lock, task, cli, …')
    .duration('--since', 'only what is not older than this')
    .duration('--until', 'only what is at least this old');
}

function filterOf({ since, until, actor, resource, event, trace, component }: FilterFlags): WitnessFilter {
  const now = Date.now();
  return given({
    ...{ actor, resource, event, trace, component },
    since: since === undefined ? undefined : now - since,
    until: until === undefined ? undefined : now - until,
  }) as WitnessFilter;
}

/** As JSON the entry as a whole, which has a hash; for people the commands that the filter asks for. */
function showEntry(
  command: Command,
  entry: WitnessEntry,
  filter: WitnessFilter,
  lines: Story['next'] = storyLines,
): void {
  if (command.isJson) return printJson(entry);
  const commands = entry.commands.filter((one) => commandFits(one, filter));
  for (const line of lines(entry, commands)) print(line);
}

export function tail(command: Command): void {
  addFilters(command)
    .option('--resource <name>', "only of this resource, or all of a kind: 'lock/*'")
    .option('-n, --last <number>', 'begin with this many of the last entries', countArgument, 10)
    .option('--no-follow', 'stop after the last entries')
    .about(`print the last entries, then each as it is written

Examples:
  signalbox witness tail --resource lock/main
  signalbox witness tail -n 100 --no-follow --json`)
    .inRecord(async ({ box, signal }, flags: FilterFlags & { readonly last: number; readonly follow: boolean }) => {
      const filter = filterOf(flags);
      if (flags.follow) {
        const onTrimmed = (): void => {
          if (command.isJson) printJson({ type: 'resync', why: TRIMMED_BEFORE_READ });
          else complain(TRIMMED_BEFORE_READ);
        };
        const following = box.witness.watch(filter, { signal, last: flags.last, onTrimmed });
        for await (const entry of following) showEntry(command, entry, filter);
        return;
      }
      const last: WitnessEntry[] = [];
      for await (const entry of box.witness.entries(filter)) {
        last.push(entry);
        if (last.length > 4 * flags.last + 100) newest(last, flags.last);
      }
      newest(last, flags.last);
      for (const entry of last) showEntry(command, entry, filter);
    });
}

/** Sorts by time, because entries of several chains have no common number. */
function newest(entries: WitnessEntry[], count: number): void {
  entries.sort((one, other) => one.time - other.time || one.seq - other.seq);
  entries.splice(0, Math.max(0, entries.length - count));
}

export function show(command: Command): void {
  addFilters(command)
    .argument('<resource>', 'such as lock/main, task/7 or component/deploy')
    .about(`print the history of one resource, from its first entry

Examples:
  signalbox witness show lock/main
  signalbox witness show lock/main --since 1h --actor ann
  signalbox witness show task/7 --json

Exit code 1 if the record has no such entry.`)
    .inRecord(async ({ box }, resource: string, flags: FilterFlags) => {
      if (!resource.includes('/'))
        throw new CliExit(EXIT.usage, `${resource} names no kind; expected a resource such as lock/${resource}`);
      const filter = { ...filterOf(flags), resource };
      const story = new Story();
      let found = 0;
      for await (const entry of box.witness.entries(filter)) {
        // A pattern would mix the stories of several.
        if (entry.resource !== resource) continue;
        found += 1;
        const isTrimmed = found === 1 && entry.seq > 1 && Object.keys(filter).length === 1 && !command.isJson;
        if (isTrimmed) print(`what came before entry ${entry.seq} was trimmed`);
        showEntry(command, entry, filter, (...told) => story.next(...told));
      }
      const hint = resource.endsWith('*') ? `; for several: signalbox witness tail --resource '${resource}'` : '';
      if (found === 0) throw new CliExit(EXIT.no, `the witness has no such entry of ${resource}${hint}`);
    });
}

interface RecordFlags {
  readonly actor?: string;
  readonly trace?: string;
  readonly payload?: Json;
  readonly sensitive?: boolean;
}

export function record(command: Command): void {
  command
    .about(`add an entry of your own

Examples:
  signalbox witness record deploy deploy:started --actor ann --payload '{"version":"1.2"}'`)
    .argument('<component>', 'entries of one component are one chain')
    .argument('<event>', 'what happened, such as deploy:started')
    .option('--actor <name>', 'who did it')
    .option('--trace <id>', 'the trace that it belongs to')
    .option('--payload <json>', 'further details: JSON, @FILE, or - for stdin', jsonArgument)
    .option('--sensitive', 'enter only the hash of the payload')
    .inRecord(async ({ box }, component: string, event: string, { trace: traceId, ...flags }: RecordFlags) => {
      const { actor, payload, sensitive } = flags;
      const entry = await box.witness.record({ component, event, ...given({ actor, traceId, payload, sensitive }) });
      command.answer(entry, `entered as ${entry.resource} #${entry.seq}`);
    });
}

export function exportRecord(command: Command): void {
  command
    .about(`write the whole record as JSON Lines, which another machine can verify

Examples:
  signalbox witness export | gzip > record.jsonl.gz
  signalbox witness export -o record.jsonl.gz
  signalbox witness export --resource lock/main --resource task/7 -o part.jsonl`)
    .option('-o, --output <file>', 'write to this file; packed with gzip if it ends in .gz')
    .list('--resource <name>', 'only the entries of this resource, and all checkpoints (repeatable)')
    .inRecord(
      async ({ box }, { output, resource }: { readonly output?: string; readonly resource: readonly string[] }) => {
        const only = resource.length > 0 ? resource : undefined;
        if (output === undefined) {
          for await (const line of exportOf(box, only)) print(line);
          return;
        }
        const lines = await exportTo(box, output, only);
        command.answer({ file: output, lines }, `wrote ${lines} lines to ${output}`);
      },
    );
}

function countArgument(text: string): number {
  const count = numberArgument(text);
  if (!Number.isSafeInteger(count) || count < 0) throw new InvalidArgumentError('expected a whole number from 0');
  return count;
}
