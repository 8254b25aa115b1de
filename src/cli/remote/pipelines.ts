/** Pipelines behind a server: it drives them, and the command line looks on. */
import type { RemoteSignalbox } from '../../client/connect.ts';
import { refusedWith } from '../../client/problem.ts';
import { pause } from '../../clock.ts';
import { hasEnded } from '../../core/index.ts';
import type { CancelOptions, DriveOutcome, ListedPipeline, ResumeOptions } from '../../runtime/pipelines/terms.ts';
import { CliExit, EXIT } from '../exit-code.ts';

/** How often to look, should an event get lost. */
const LOOK_MS = 2_000;

export function remotePipelines(client: RemoteSignalbox): object {
  const { pipelines } = client;
  return {
    list: pipelines.list.bind(pipelines),
    show: pipelines.show.bind(pipelines),
    logs: pipelines.logs.bind(pipelines),
    cancel: (id: string, options: CancelOptions) => cancelled(client, id, options),
    resume: (id: string, options: ResumeOptions) => resumed(client, id, options),
  };
}

async function cancelled(
  client: RemoteSignalbox,
  id: string,
  { by, reason, signal }: CancelOptions,
): Promise<ListedPipeline | undefined> {
  try {
    await client.pipelines.cancel(id, { ...(by !== undefined && { by }), ...(reason !== undefined && { reason }) });
  } catch (error) {
    // What is over already, the command reports by the record.
    if (refusedWith(error, 'no-such-thing', 'wrong-state').code === 'no-such-thing') return undefined;
  }
  return followed(client, id, (record) => hasEnded(record), signal);
}

/** The server goes on when this command is interrupted. */
async function resumed(client: RemoteSignalbox, id: string, options: ResumeOptions): Promise<DriveOutcome> {
  const { decision, question, from, by, signal, onChange, functions, cwd } = options;
  if (functions !== undefined || cwd !== undefined) {
    throw new CliExit(EXIT.usage, '--runbook and --dir do not work through a server: it runs the commands itself');
  }
  const asked = Object.entries({ decision, question, from, by }).filter(([, value]) => value !== undefined);
  try {
    await client.pipelines.resume(id, Object.fromEntries(asked));
  } catch (error) {
    const { code, detail, outcome } = refusedWith(error, 'no-such-thing', 'wrong-state');
    if (code === 'no-such-thing') return { kind: 'missing' };
    throw new CliExit(EXIT.no, detail, { outcome });
  }
  const isLeft = (record: ListedPipeline): boolean => {
    onChange?.(record);
    return hasEnded(record) || (record.state === 'blocked' && !record.isDriven);
  };
  const record = await followed(client, id, isLeft, signal);
  if (signal?.aborted === true) throw new CliExit(EXIT.notAcquired, `the server goes on with pipeline/${id}`);
  return record === undefined ? { kind: 'missing' } : { kind: 'left', record };
}

/** Looks whenever something happens to it, until that is enough. */
async function followed(
  client: RemoteSignalbox,
  id: string,
  isEnough: (record: ListedPipeline) => boolean,
  signal: AbortSignal | undefined,
): Promise<ListedPipeline | undefined> {
  let wake = new AbortController();
  const subscription = await client.on('pipeline:*', () => wake.abort());
  try {
    for (;;) {
      wake = new AbortController();
      const record = await client.pipelines.show(id);
      if (record === undefined || isEnough(record) || signal?.aborted === true) return record;
      await pause(LOOK_MS, AbortSignal.any([wake.signal, ...(signal === undefined ? [] : [signal])]));
    }
  } finally {
    subscription.unsubscribe();
  }
}
