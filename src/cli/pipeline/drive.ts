/** Drives a pipeline from the command line: shows it, stops it on Ctrl-C, and turns its outcome into an exit code. */
import type { Command } from '../command.ts';
import { hasEnded, type PipelineRecord, spoken } from '../../core/index.ts';
import type { DriveOptions, DriveOutcome, OtherDriver } from '../../runtime/pipelines/terms.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { complain, printable, printJson, readerGone, screen } from '../output.ts';
import { withBox } from '../store.ts';
import { pipelineJson } from '../../json/pipeline.ts';
import { showFor } from './show.ts';
import { howToGoOn, quoted } from './words.ts';

export type Driven = Required<Pick<DriveOptions, 'signal' | 'hurrying' | 'onChange' | 'onOutput' | 'onStandBy'>>;
/** Which pipeline to drive, and the caller's answer to its question. */
export interface Asked {
  readonly id: string;
  readonly hasDecided?: boolean;
}

type Work = (box: Signalbox, driven: Driven) => Promise<DriveOutcome>;

const STOPPING = 'stopping its command; press Ctrl-C again to kill it';

/** Throws the exit code, unless the pipeline is done. */
export async function drive(command: Command, asked: Asked, work: Work): Promise<void> {
  const hurry = new AbortController();
  // A driver may run for long, so it does maintenance like every long-lived process.
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
  const show = showFor(command, asked.hasDecided === true);
  let record: PipelineRecord | undefined;
  // A failure to print stops the driver like Ctrl-C: thrown from here, it would leave the command running.
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
      onStandBy: (other) => safely(() => show.say(standByTold(asked.id, other))),
    });
    if (broken.signal.aborted) throw broken.signal.reason;
    if (outcome.kind !== 'left') throw refusalOf(asked.id, outcome);
    // The pipeline had already ended.
    if (record === undefined && hasEnded(outcome.record) && !command.isJson)
      throw overAlready(outcome.record, asked.hasDecided === true);
    ({ record } = outcome);
  } finally {
    signal.removeEventListener('abort', onAbort);
    safely(() => show.over(record));
  }
  endedWith(command, record, signal.aborted);
}

/** Says how to continue if the pipeline has not ended; throws the exit code unless it is done. */
function endedWith(command: Command, record: PipelineRecord, isStopped: boolean): void {
  const { id, state } = record;
  if (command.isJson) {
    const result = hasEnded(record) ? state : isStopped ? 'stopped' : 'blocked';
    printJson({ type: 'result', result, ...pipelineJson(record) });
  } else if (!hasEnded(record)) {
    complain(`signalbox: pipeline/${printable(id)}: ${isStopped ? 'stopped' : 'left blocked'}; it can be resumed`);
    for (const line of howToGoOn(record)) complain(`  ${printable(line)}`);
  } else if (state === 'failed') {
    // A terminal shows the phases, and why one failed.
    if (screen().isTTY !== true) complain(`signalbox: pipeline/${printable(id)}: failed${whyTold(record)}`);
    complain(`  see: signalbox pipeline status ${quoted(id)} --log`);
    for (const line of howToGoOn(record)) complain(`  ${printable(line)}`);
  }
  if (state === 'done') return;
  // The signal decides the exit code then.
  if (isStopped && !hasEnded(record) && !readerGone.aborted) return;
  throw new CliExit(hasEnded(record) ? EXIT.no : EXIT.notAcquired, '');
}

function whyTold({ reason = '' }: PipelineRecord): string {
  return reason === '' ? '' : `: ${printable(reason)}`;
}

export function standByTold(id: string, { holder, isGone, leaseEndsInMs }: OtherDriver): string {
  const lease = leaseEndsInMs === undefined ? '' : `; its lease ends in ${spoken(leaseEndsInMs)}`;
  const who = isGone ? `its driver's process is gone${lease}` : `driven by ${holder}`;
  return `waiting for pipeline/${id}; ${who}`;
}

/** A decision that comes too late has no effect, even if the pipeline ended well. */
function overAlready(record: PipelineRecord, hasDecided: boolean): CliExit {
  const { id, state, reason = '' } = record;
  const why = reason === '' ? '' : ` (${reason})`;
  const again = state === 'failed' ? howToGoOn(record) : [];
  const free = `free its id for another one: signalbox pipeline forget ${quoted(id)}`;
  const told = `pipeline/${id}: it ${state === 'failed' ? 'has failed' : `is ${state}`}${why}`;
  const message = [told, ...again, again.length === 0 ? free : `or ${free}`].join('\n  ');
  return new CliExit(state === 'done' && !hasDecided ? EXIT.ok : EXIT.no, message);
}

function refusalOf(id: string, outcome: Exclude<DriveOutcome, { kind: 'left' }>): CliExit {
  switch (outcome.kind) {
    case 'exists': {
      const message = `pipeline/${outcome.id}: there is one already\n  see: signalbox pipeline status ${quoted(outcome.id)}\n  if it has ended, free its id: signalbox pipeline forget ${quoted(outcome.id)}`;
      return new CliExit(EXIT.no, message, { outcome: 'exists', pipeline: outcome.id });
    }
    case 'driven':
      return new CliExit(
        EXIT.notAcquired,
        `pipeline/${id}: driven by ${outcome.by}\n  take over when that process ends: signalbox pipeline resume ${quoted(id)} --wait`,
        {
          outcome: 'driven',
          by: outcome.by,
        },
      );
    case 'nothing-to-decide': {
      const { state } = outcome.record;
      const next = hasEnded(outcome.record)
        ? ''
        : `. If its driver was killed: signalbox pipeline resume ${quoted(id)}, which asks you if a phase cannot simply be repeated`;
      const message = `pipeline/${id}: nothing was done, because no phase waits for a decision: it is ${state}${next}`;
      return new CliExit(EXIT.no, message, { outcome: 'nothing-to-decide', pipeline: id });
    }
    case 'answered': {
      const { by, choice } = outcome;
      const { state } = outcome.record;
      const answer = by === undefined || choice === undefined ? '' : `: ${by} decided ${choice}`;
      const message = `pipeline/${id}: nothing was done, because that question is already answered${answer}. It is ${state}`;
      return new CliExit(EXIT.no, message, { outcome: 'answered', pipeline: id });
    }
    case 'another-question': {
      const { question, record } = outcome;
      const { blocked } = record;
      const why = blocked?.on === 'person' ? blocked.why : '';
      const next = howToGoOn(record).map((line) => `  ${line}`);
      const message = [
        `pipeline/${id}: nothing was done, because that question is not open. The open one is question ${question}: ${why}`,
        ...next,
      ].join('\n');
      return new CliExit(EXIT.no, message, { outcome: 'another-question', pipeline: id, question });
    }
    case 'not-reopened':
      // If the pipeline has failed, the phase was the mistake.
      return new CliExit(outcome.record.state === 'failed' ? EXIT.usage : EXIT.no, outcome.why, {
        outcome: 'not-reopened',
        pipeline: id,
      });
    case 'moved-on':
      return new CliExit(
        EXIT.no,
        `pipeline/${id}: nothing was done, because it has moved on: it is ${outcome.record.state}`,
        {
          outcome: 'moved-on',
          pipeline: id,
        },
      );
    case 'missing':
      return noSuchPipeline(id);
  }
}

export function noSuchPipeline(id: string): CliExit {
  return new CliExit(EXIT.no, `pipeline/${id}: there is no such pipeline`);
}
