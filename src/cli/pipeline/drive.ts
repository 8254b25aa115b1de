/** Driving a pipeline from the command line: shown while it goes, ended by Ctrl-C, answered with an exit code. */
import type { Command } from 'commander';
import { hasEnded, type PipelineRecord } from '../../core/index.ts';
import type { DriveOptions, DriveOutcome } from '../../runtime/pipelines/terms.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { complain, printable, printJson, readerGone, screen } from '../output.ts';
import { isJson, withBox } from '../store.ts';
import { pipelineJson } from './json.ts';
import { showFor } from './show.ts';
import { howToGoOn, quoted } from './words.ts';

export type Driven = Required<Pick<DriveOptions, 'signal' | 'hurrying' | 'onChange' | 'onOutput'>>;
/** Which pipeline is meant, and whether the caller answers a question of it. */
export interface Asked {
  readonly id: string;
  readonly hasDecided?: boolean;
}

type Work = (box: Signalbox, driven: Driven) => Promise<DriveOutcome>;

const STOPPING = 'stopping: its command is being ended; Ctrl-C again ends it at once';

/** Throws the exit code, unless the pipeline is done. */
export async function drive(command: Command, asked: Asked, work: Work): Promise<void> {
  const hurry = new AbortController();
  // A driver stays: it looks after stale holds like everybody else who does.
  const options = { maintains: true };
  await withBox(command, (box, signal) => shown(command, asked, box, signal, hurry.signal, work), options, hurry);
}

async function shown(
  command: Command,
  asked: Asked,
  box: Signalbox,
  signal: AbortSignal,
  hurrying: AbortSignal,
  work: Work,
): Promise<void> {
  const show = showFor(command);
  let record: PipelineRecord | undefined;
  // What cannot be shown ends the driving as Ctrl-C does: thrown from here, it would leave the command behind.
  const broken = new AbortController();
  const safely = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      broken.abort(error);
    }
  };
  const onAbort = (): void => {
    if (record?.step.when === 'during') show.say(STOPPING);
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    const outcome = await work(box, {
      signal: AbortSignal.any([signal, broken.signal]),
      hurrying,
      onChange: (changed) => safely(() => show.changed((record = changed))),
      onOutput: (phase, text) => safely(() => show.printed(phase, text)),
    });
    if (broken.signal.aborted) throw broken.signal.reason;
    if (outcome.kind !== 'left') throw refusalOf(asked.id, outcome);
    // It was over before.
    if (record === undefined && hasEnded(outcome.record) && !isJson(command))
      throw overAlready(outcome.record, asked.hasDecided === true);
    ({ record } = outcome);
  } finally {
    signal.removeEventListener('abort', onAbort);
    safely(() => show.over(record));
  }
  endedWith(command, record, signal.aborted);
}

/** Says how to go on, if it is not over; throws the exit code, unless it is done. */
function endedWith(command: Command, record: PipelineRecord, isStopped: boolean): void {
  const { id, state } = record;
  if (isJson(command)) {
    const result = hasEnded(record) ? state : isStopped ? 'stopped' : 'blocked';
    printJson({ type: 'result', result, ...pipelineJson(record) });
  } else if (!hasEnded(record)) {
    complain(`signalbox: pipeline/${printable(id)}: left ${isStopped ? 'where it is' : 'blocked'}`);
    for (const line of howToGoOn(record)) complain(`  ${printable(line)}`);
  } else if (state === 'failed' && screen().isTTY === true) {
    complain(`  all that it printed: signalbox pipeline status ${quoted(id)} --log`);
  }
  if (state === 'done') return;
  // Then the exit code is that of the signal.
  if (isStopped && !hasEnded(record) && !readerGone.aborted) return;
  throw new CliExit(hasEnded(record) ? EXIT.no : EXIT.notAcquired, '');
}

/** A decision that comes too late is void, also where the pipeline has come to a good end. */
function overAlready({ id, state, reason = '' }: PipelineRecord, hasDecided: boolean): CliExit {
  const why = reason === '' ? '' : ` (${reason})`;
  const message = `pipeline/${id}: it is ${state}${why} and cannot be resumed. Start another one, under another id or after: signalbox pipeline forget ${quoted(id)}`;
  return new CliExit(state === 'done' && !hasDecided ? EXIT.ok : EXIT.no, message);
}

function refusalOf(id: string, outcome: Exclude<DriveOutcome, { kind: 'left' }>): CliExit {
  switch (outcome.kind) {
    case 'exists': {
      const message = `pipeline/${outcome.id}: there is one already\n  see: signalbox pipeline status ${quoted(outcome.id)}\n  one that is over can be forgotten: signalbox pipeline forget ${quoted(outcome.id)}`;
      return new CliExit(EXIT.no, message, { outcome: 'exists', pipeline: outcome.id });
    }
    case 'driven':
      return new CliExit(
        EXIT.notAcquired,
        `pipeline/${id}: ${outcome.by} drives it, or was killed a moment ago and its lease has not ended yet. To go on as soon as it is over: signalbox pipeline resume ${quoted(id)} --wait`,
        {
          outcome: 'driven',
          by: outcome.by,
        },
      );
    case 'nothing-to-decide': {
      const { state } = outcome.record;
      const next = hasEnded(outcome.record)
        ? ''
        : `. If its driver was killed: signalbox pipeline resume ${quoted(id)} --wait, which asks if a phase cannot simply be repeated`;
      const message = `pipeline/${id}: there is nothing to decide, because no phase of it waits for a person: it is ${state}. Nothing was done${next}`;
      return new CliExit(EXIT.no, message, { outcome: 'nothing-to-decide', pipeline: id });
    }
    case 'answered': {
      const { by, choice } = outcome;
      const { state } = outcome.record;
      const answer = by === undefined || choice === undefined ? '' : `: ${by} decided ${choice}`;
      const message = `pipeline/${id}: that question was answered before${answer}. It is ${state}; nothing was done`;
      return new CliExit(EXIT.no, message, { outcome: 'answered', pipeline: id });
    }
    case 'another-question': {
      const { question, record } = outcome;
      const { blocked } = record;
      const why = blocked?.on === 'person' ? blocked.why : '';
      const next = howToGoOn(record).map((line) => `  ${line}`);
      const message = [
        `pipeline/${id}: that question is not open, so nothing was done. Open is question ${question}: ${why}`,
        ...next,
      ].join('\n');
      return new CliExit(EXIT.no, message, { outcome: 'another-question', pipeline: id, question });
    }
    case 'missing':
      return noSuchPipeline(id);
  }
}

export function noSuchPipeline(id: string): CliExit {
  return new CliExit(EXIT.no, `pipeline/${id}: there is no such pipeline`);
}
