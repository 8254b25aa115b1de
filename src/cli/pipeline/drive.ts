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

export type Driven = Required<
  Pick<DriveOptions, 'signal' | 'hurrying' | 'onChange' | 'onOutput' | 'onMessage' | 'onStandBy'>
>;
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
  const driving = async (box: Signalbox, signal: AbortSignal): Promise<void> => {
    const show = showFor(command, asked.hasDecided === true);
    let record: PipelineRecord | undefined;
    // A failure to print stops the driver like Ctrl-C: thrown from here, it would leave the command running.
    const broken = new AbortController();
    const safely = (print: () => void): void => {
      try {
        print();
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
        hurrying: hurry.signal,
        onChange: (changed) => safely(() => show.changed((record = changed))),
        onOutput: (phase, text) => safely(() => show.printed(phase, text)),
        onMessage: (phase, message) => safely(() => show.message(phase, message)),
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
  };
  // A driver may run for long, so it does maintenance like every long-lived process.
  await withBox(command, driving, { maintains: true }, hurry);
}

/** Says how to continue if the pipeline has not ended; throws the exit code unless it is done. */
function endedWith(command: Command, record: PipelineRecord, isStopped: boolean): void {
  const { id, state, reason = '' } = record;
  if (command.isJson) {
    const result = hasEnded(record) ? state : isStopped ? 'stopped' : 'blocked';
    printJson({ type: 'result', result, ...pipelineJson(record) });
  } else if (!hasEnded(record)) {
    complain(`signalbox: pipeline/${printable(id)}: ${isStopped ? 'stopped' : 'left blocked'}; it can be resumed`);
    for (const line of howToGoOn(record)) complain(`  ${printable(line)}`);
  } else if (state === 'failed') {
    // A terminal shows the phases, and why one failed.
    const why = reason === '' ? '' : `: ${printable(reason)}`;
    if (screen().isTTY !== true) complain(`signalbox: pipeline/${printable(id)}: failed${why}`);
    complain(`  see: signalbox pipeline status ${quoted(id)} --log`);
    for (const line of howToGoOn(record)) complain(`  ${printable(line)}`);
  }
  if (state === 'done') return;
  // The signal decides the exit code then.
  if (isStopped && !hasEnded(record) && !readerGone.aborted) return;
  throw new CliExit(hasEnded(record) ? EXIT.no : EXIT.notAcquired, '');
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
  const { kind } = outcome;
  const refused = (why: string, more: object = {}): CliExit =>
    new CliExit(EXIT.no, `pipeline/${id}: ${why}`, { outcome: kind, pipeline: id, ...more });
  switch (outcome.kind) {
    case 'exists': {
      const taken = quoted(outcome.id);
      const see = `see: signalbox pipeline status ${taken}`;
      const message = `pipeline/${outcome.id}: there is one already\n  ${see}\n  if it has ended, free its id: signalbox pipeline forget ${taken}`;
      return new CliExit(EXIT.no, message, { outcome: kind, pipeline: outcome.id });
    }
    case 'driven': {
      const { by } = outcome;
      const next = `take over when that process ends: signalbox pipeline resume ${quoted(id)} --wait`;
      return new CliExit(EXIT.notAcquired, `pipeline/${id}: driven by ${by}\n  ${next}`, { outcome: kind, by });
    }
    case 'nothing-to-decide': {
      const { record } = outcome;
      const next = `. If its driver was killed: signalbox pipeline resume ${quoted(id)}, which asks you if a phase cannot simply be repeated`;
      const why = `no phase waits for a decision: it is ${record.state}${hasEnded(record) ? '' : next}`;
      return refused(`nothing was done, because ${why}`);
    }
    case 'answered': {
      const { by, choice, record } = outcome;
      const answer = by === undefined || choice === undefined ? '' : `: ${by} decided ${choice}`;
      return refused(`nothing was done, because that question is already answered${answer}. It is ${record.state}`);
    }
    case 'another-question': {
      const { question, record } = outcome;
      const why = record.blocked?.on === 'person' ? record.blocked.why : '';
      const open = `nothing was done, because that question is not open. The open one is question ${question}: ${why}`;
      return refused([open, ...howToGoOn(record)].join('\n  '), { question });
    }
    case 'not-reopened': {
      // If the pipeline has failed, the phase was the mistake.
      const exitCode = outcome.record.state === 'failed' ? EXIT.usage : EXIT.no;
      return new CliExit(exitCode, outcome.why, { outcome: kind, pipeline: id });
    }
    case 'moved-on':
      return refused(`nothing was done, because it has moved on: it is ${outcome.record.state}`);
    case 'missing':
      return noSuchPipeline(id);
  }
}

export function noSuchPipeline(id: string): CliExit {
  return new CliExit(EXIT.no, `pipeline/${id}: there is no such pipeline`);
}
