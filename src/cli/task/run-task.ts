/** Carries out `task run`: claims one task, runs a command for it, and ends the task as the command ended. */
import type { Command } from '../command.ts';
import { spoken } from '../../core/index.ts';
import type { EndOutcome, TaskClaim } from '../../runtime/tasks/claim.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { printJson, printText, say, tell } from '../output.ts';
import { attended } from '../run/attended.ts';
import type { RunEnded } from '../run/ended.ts';
import { openInTime, WaitLimit } from '../opening.ts';
import { opened } from '../run/run.ts';
import { leaveStreamsAlone } from '../run/streams.ts';
import { claimed } from './claim.ts';
import { programOf, workerName } from './command.ts';
import { type JobEnd, runJob } from './job.ts';
import type { RunFlags } from './run.ts';

export async function runTask(
  command: Command,
  id: string | undefined,
  argv: readonly string[],
  flags: RunFlags,
): Promise<RunEnded> {
  const program = programOf(command, argv, flags);
  leaveStreamsAlone();
  return attended('now-and-then', async ({ signals, voice, sharesTerminal }) => {
    const { url, ttlMs, witness } = program;
    const limit = new WaitLimit(flags.wait);
    const box = await openInTime({ url, leaving: signals.leaving, limit }, (signal) =>
      opened(url, ttlMs, witness, signal),
    );
    try {
      const worker = { holder: workerName('run', flags), capabilities: flags.capability };
      const options = { ...worker, waitMs: limit.leftMs ?? 0, signal: signals.leaving };
      if (options.waitMs > 0) tell(`signalbox: waiting for ${id === undefined ? 'a task' : `task/${id}`}`);
      const { tasks } = box;
      const claim = await claimed(
        box,
        flags.wait,
        id === undefined ? tasks.claimNext(options) : tasks.claim(id, options),
      );
      const onOutput = command.isJson ? (): void => undefined : printText;
      const end = await runJob(box, claim, { ...program, leads: !sharesTerminal, onOutput }, signals, voice);
      return told(command, claim, end);
    } finally {
      await box.close();
    }
  });
}

function told(command: Command, { id }: TaskClaim, { ended, outcome, error }: JobEnd): RunEnded {
  if (error !== undefined) throw error;
  if (outcome === undefined) throw new CliExit(EXIT.lost, `task/${id}: the claim was lost while the command ran`);
  const { kind, ...details } = outcome;
  if (command.isJson) printJson({ task: id, outcome: kind, ...details });
  else say(outcomeTold(id, outcome));
  return ended;
}

/** `after`: how long the command ran, such as ` after 3 s`. */
export function outcomeTold(id: string, outcome: EndOutcome, after = ''): string {
  switch (outcome.kind) {
    case 'completed':
      return `task/${id}: complete${after}`;
    case 'released':
      return `task/${id}: interrupted, so it was given back${after}`;
    case 'failed':
      return `task/${id}: failed${after} (attempt ${outcome.attempts})`;
    case 'retried': {
      const { attempts, retriesLeft, backoffMs } = outcome;
      const when = backoffMs === 0 ? 'now' : `in ${spoken(backoffMs)}`;
      const left = retriesLeft === 1 ? '1 retry is left' : `${retriesLeft} retries are left`;
      return `task/${id}: attempt ${attempts} failed${after}; ${left}, the next one can begin ${when}`;
    }
    case 'not-owner':
      return `task/${id}: the claim was lost${after}`;
  }
}
