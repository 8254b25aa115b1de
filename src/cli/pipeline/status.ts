/** `signalbox pipeline status` and `pipeline list`. */
import type { Command } from '../command.ts';
import { currentPhase, hasEnded, PIPELINE_STATES, type PipelineRecord, spoken } from '../../core/index.ts';
import type { Malformed } from '../../runtime/stored.ts';
import type { PhaseLog } from '../../runtime/pipelines/log.ts';
import type { ListedPipeline, PipelineView } from '../../runtime/pipelines/terms.ts';
import { shown } from '../../failure.ts';
import { given } from '../arguments.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { printList } from '../listing.ts';
import { look } from '../read-only.ts';
import { joined, paintFor, print, printable, printJson, screen, warnOf } from '../output.ts';
import { type Layout, layoutFor, tableLines } from '../table.ts';
import { pipelineId } from './arguments.ts';
import { withoutEscapes } from './columns.ts';
import { noSuchPipeline } from './drive.ts';
import { pipelineJson } from '../../json/pipeline.ts';
import { pictureOf } from './picture.ts';
import { blockedLines, howToGoOn, lengthOf, shownState } from './words.ts';

export function status(command: Command): void {
  command
    .about(`show the state of a pipeline, what it waits for, and what its phases printed

Examples:
  signalbox pipeline status release-7
  signalbox pipeline status release-7 --log
  signalbox pipeline status release-7 --log deploy
  signalbox pipeline status release-7 --json | jq -r '.blocked.guards[]?.reasons[]'

Exit code 1 if there is no such pipeline.`)
    .argument('<id>', 'of the pipeline', pipelineId)
    .option('--log [phase]', 'print the output of its commands, of all phases or of one')
    .action(async (id: string, { log }: { log?: string | true }) => {
      const malformed: Malformed[] = [];
      const onMalformed = (one: Malformed): void => void malformed.push(one);
      const { found } = await look(command, async (box) => ({
        view: await box.pipelines.show(id),
        logs: log === undefined ? undefined : await box.pipelines.logs(id, { onMalformed }),
      }));
      if (found.view === undefined) throw noSuchPipeline(id);
      const phases = found.view.phases.map(({ name }) => name);
      if (typeof log === 'string' && !phases.includes(log)) {
        throw new CliExit(EXIT.usage, `pipeline/${id} has no phase ${shown(log)}; it has ${phases.join(', ')}`);
      }
      const logs = found.logs?.filter(({ phase }) => log === true || phase === log);
      const { isDriven, cwd, host } = found.view;
      if (command.isJson) return printJson({ ...pipelineJson(found.view), isDriven, cwd, host, ...given({ logs }) });
      warnOf(malformed);
      if (logs !== undefined) return printLogs(logs);
      printStatus(found.view);
    });
}

function printStatus(view: PipelineView): void {
  const terminal = screen();
  const { width, paint } = layoutFor(terminal, paintFor(terminal));
  const all = { width, height: Number.POSITIVE_INFINITY, paint };
  const frame = { ...all, now: Date.now(), printed: [], isDriven: view.isDriven };
  for (const { text } of pictureOf(view, frame)) print(text);
  print('');
  print(
    paint('dim', printable(`started by ${view.startedBy}, ${new Date(view.startedAt).toISOString()}, in ${view.cwd}`)),
  );
  if (view.driver !== undefined && view.isDriven) print(paint('dim', printable(`driven by ${view.driver.holder}`)));
  const canGoOn = view.state === 'failed' || (view.endedAt === undefined && !view.isDriven);
  if (canGoOn) for (const line of howToGoOn(view)) print(printable(line));
}

/** Prints logs unchanged into a file, and without control characters on a terminal. */
function printLogs(logs: readonly PhaseLog[]): void {
  const isTerminal = screen().isTTY === true;
  const paint = paintFor(screen());
  for (const { phase, run, text } of logs) {
    print(paint('bold', `── ${printable(phase)}${run > 1 ? ` (run ${run})` : ''}`));
    const lines = text.replace(/\n$/, '').split('\n');
    print((isTerminal ? lines.map((line) => printable(withoutEscapes(line))) : lines).join('\n'));
  }
  if (logs.length === 0) print('Nothing was printed.');
}

/** As people see a pipeline that runs, but that no process drives. */
const STOPPED = 'stopped';

export function list(command: Command): void {
  command
    .about(`list all pipelines in the order in which they were started

Examples:
  signalbox pipeline list
  signalbox pipeline list --status blocked
  signalbox pipeline list --json | jq .pipelines

A running pipeline that no process drives is listed as stopped; with --json,
as running with isDriven false.`)
    .oneOf('--status <status>', 'only pipelines with this status', [...PIPELINE_STATES, STOPPED])
    .option('--names', 'print only the ids, one per line')
    .action(async ({ status, names }: { status?: PipelineRecord['state'] | typeof STOPPED; names?: true }) => {
      const state = status === STOPPED ? 'running' : status;
      await printList(command, {
        names,
        look: async (box, onMalformed) => {
          const found = await box.pipelines.list({ onMalformed, ...given({ state }) });
          return status === STOPPED ? found.filter(({ isDriven }) => !isDriven) : found;
        },
        all: (found) => found,
        name: ({ id }) => id,
        json: (found, malformed) => ({
          pipelines: found.map((one) => ({ ...pipelineJson(one), isDriven: one.isDriven })),
          malformed,
        }),
        nothing: status === undefined ? 'There are no pipelines.' : `No pipeline is ${status}.`,
        lines: listLines,
      });
    });
}

export function listLines(records: readonly ListedPipeline[], layout: Layout): readonly string[] {
  const now = Date.now();
  const rows = records.map((record) => {
    const { id, phases, startedBy, blocked, reason = '', isDriven } = record;
    const over = phases.filter((phase) => phase.state === 'done' || phase.state === 'skipped').length;
    const why = blocked === undefined ? reason : (blockedLines(blocked, now)[0] ?? '');
    const isLeft = !isDriven && !hasEnded(record);
    const note = joined([why, isLeft ? `no process drives it; ${howToGoOn(record)[0]}` : ''], '; ');
    const cells = [
      id,
      shownState(record, isDriven),
      currentPhase(record) ?? '',
      `${over}/${phases.length}`,
      spoken(lengthOf(record, now)),
      startedBy,
    ];
    return { cells, note: [note] };
  });
  return tableLines(['PIPELINE', 'STATE', 'PHASE', 'DONE', 'TIME', 'STARTED BY'], rows, layout);
}
