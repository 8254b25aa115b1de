/** Pipelines behind a server: the server drives them, and the command line shows their progress. */
import type { RemoteSignalbox } from '../../client/connect.ts';
import { refusedWith } from '../../client/problem.ts';
import { type Clock, pause, systemClock } from '../../clock.ts';
import { hasEnded } from '../../core/index.ts';
import type { CancelOptions, DriveOutcome, ListedPipeline, ResumeOptions } from '../../runtime/pipelines/terms.ts';
import { Failure } from '../../failure.ts';
import { given } from '../arguments.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { anyOf } from '../interrupt.ts';
import { quoted } from '../pipeline/words.ts';
import { Away } from './away.ts';

/** How often to look if an event gets lost. */
const LOOK_MS = 2_000;
/** How long to wait for a server that is away; it goes on with the request by itself. */
const AWAY_MS = 30_000;

export function remotePipelines(client: RemoteSignalbox, clock: Clock = systemClock): object {
  return {
    cancel: (id: string, options: CancelOptions) => cancelled(client, id, options, clock),
    resume: (id: string, options: ResumeOptions) => resumed(client, id, options, clock),
  };
}

async function cancelled(
  client: RemoteSignalbox,
  id: string,
  { by, reason, signal }: CancelOptions,
  clock: Clock,
): Promise<ListedPipeline | undefined> {
  try {
    await client.pipelines.cancel(id, given({ by, reason }));
  } catch (error) {
    // If it is over already, the command reports what the record says.
    if (refusedWith(error, 'no-such-thing', 'wrong-state').code === 'no-such-thing') return undefined;
  }
  return followed(client, id, (record) => hasEnded(record), signal, clock);
}

/** The server goes on when this command is interrupted. */
async function resumed(
  client: RemoteSignalbox,
  id: string,
  options: ResumeOptions,
  clock: Clock,
): Promise<DriveOutcome> {
  const { decision, question, from, by, signal, onChange, functions, cwd } = options;
  if (functions !== undefined || cwd !== undefined) {
    throw new CliExit(EXIT.usage, '--runbook and --dir do not work through a server: it runs the commands itself');
  }
  try {
    await client.pipelines.resume(id, given({ decision, question, from, by }));
  } catch (error) {
    const { code, detail, outcome } = refusedWith(error, 'no-such-thing', 'wrong-state');
    if (code === 'no-such-thing') return { kind: 'missing' };
    throw new CliExit(EXIT.no, detail, { outcome });
  }
  const isLeft = (record: ListedPipeline): boolean => {
    onChange?.(record);
    return hasEnded(record) || (record.state === 'blocked' && !record.isDriven);
  };
  const record = await followed(client, id, isLeft, signal, clock);
  if (signal?.aborted === true) throw new CliExit(EXIT.notAcquired, `the server goes on with pipeline/${id}`);
  return record === undefined ? { kind: 'missing' } : { kind: 'left', record };
}

/** Looks after every event of the pipeline, until `isEnough`. */
async function followed(
  client: RemoteSignalbox,
  id: string,
  isEnough: (record: ListedPipeline) => boolean,
  signal: AbortSignal | undefined,
  clock: Clock,
): Promise<ListedPipeline | undefined> {
  let wake = new AbortController();
  const away = new Away(AWAY_MS, clock);
  // Events only wake the loop: if one is missed, or there are none, the next look still finds the change.
  const woken = (): void => wake.abort();
  const subscription = client.subscribe('pipeline:*', woken, woken).catch(() => undefined);
  try {
    for (;;) {
      wake = new AbortController();
      const record = await away.unless(client.pipelines.show(id), signal).catch((error: unknown) => {
        if (!Failure.is(error)) throw error;
        const look = `what was asked of pipeline/${id} was asked before; see: signalbox pipeline status ${quoted(id)}`;
        throw new Failure(error.code, `${error.message}\n  ${look}`, { cause: error });
      });
      const isOver = signal?.aborted === true;
      if (away.trouble === undefined && (record === undefined || isEnough(record) || isOver)) return record;
      if (isOver) return undefined;
      await pause(LOOK_MS, anyOf(wake.signal, signal), clock);
    }
  } finally {
    void subscription.then((opened) => opened?.unsubscribe());
  }
}
