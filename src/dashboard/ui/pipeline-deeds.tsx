/** Resume and cancel, for administrators; a server that runs no commands cannot resume. */
import type { JSX } from 'preact';
import type { Snapshot } from '../live/store.ts';
import { movedOn } from '../model/expected.ts';
import { isDone, routeOf } from '../model/needs.ts';
import { object } from '../model/read.ts';
import { shortened } from '../model/text.ts';
import type { Pipeline } from '../model/types.ts';
import { whyNot } from './app.ts';
import { Deed } from './parts.tsx';
import type { Sign } from './signs.tsx';
import { ask } from './work-parts.tsx';

type Will = readonly { readonly sign: Sign; readonly text: string }[];

export function PipelineDeeds({ of, snapshot }: { of: Pipeline; snapshot: Snapshot }): JSX.Element {
  const may = whyNot(snapshot, 'administrator');
  const noCommands =
    snapshot.state?.allowsCommands === true
      ? undefined
      : 'This server runs no commands: start it with --allow-commands';
  const not = may ?? noCommands;
  const isOver = of.endedAt !== null;
  const phase = shortened(of.phase ?? 'its next phase', 80);
  const question = of.blocked?.on === 'person' ? of.blocked.question : null;
  const failed = of.phases.find(({ state }) => state === 'failed')?.name;
  const resume = (title: string, label: string, will: Will, body: Readonly<Record<string, unknown>>): void =>
    ask({
      ...{
        title,
        will: [...will, RECORDED],
        changed: ({ state }) => movedOn(of, state),
        label,
        role: 'administrator',
        method: 'POST',
        body: { ...body, expected: { ...lifeOf(of), state: of.state, phase: of.phase } },
      },
      ...{ path: `/v1${routeOf(`pipeline/${of.id}`)}/resume`, done: `pipeline/${of.id} goes on` },
    });
  const decide = (decision: 'rerun' | 'skip'): void =>
    resume(
      decision === 'rerun' ? `Run ${phase} of pipeline/${of.id} again?` : `Skip ${phase} of pipeline/${of.id}?`,
      decision === 'rerun' ? 'Run it again' : 'Skip it',
      [
        decision === 'rerun'
          ? { sign: 'held', text: `This server runs the command of ${phase} once more, from its beginning.` }
          : {
              sign: 'danger',
              text: `The pipeline goes on as if ${phase} were done, although its command may have stopped halfway.`,
            },
      ],
      { decision, ...(question !== null && { question }) },
    );
  return (
    <>
      {of.blocked?.on === 'person' && (
        <>
          <Deed label="Run again…" not={not} onClick={() => decide('rerun')} />
          <Deed label="Skip…" not={not} onClick={() => decide('skip')} />
        </>
      )}
      {!isOver && !of.isDriven && of.blocked?.on !== 'person' && (
        <Deed
          label="Resume…"
          not={not}
          onClick={() =>
            resume(
              `Resume pipeline/${of.id}?`,
              'Resume',
              [{ sign: 'held', text: `This server drives it from ${phase} on.` }],
              {},
            )
          }
        />
      )}
      {of.state === 'failed' && failed !== undefined && (
        <Deed
          label="Start again…"
          not={not}
          onClick={() =>
            resume(
              `Start pipeline/${of.id} again from ${failed}?`,
              'Start again',
              [{ sign: 'held', text: `This server runs ${failed} and what comes after it; earlier phases stay done.` }],
              { from: failed },
            )
          }
        />
      )}
      {!isOver && (
        <Deed
          class="danger"
          label="Cancel…"
          not={of.isCancelling ? 'It is being cancelled' : may}
          onClick={() => askToCancel(of)}
        />
      )}
    </>
  );
}

const RECORDED = { sign: 'clear', text: 'An event records it, with your token’s name.' } as const;

/** Distinguishes this run from a later one with the same id. */
function lifeOf({ startedAt }: Pipeline): { readonly startedAt?: string } {
  return startedAt === null ? {} : { startedAt: new Date(startedAt).toISOString() };
}

/** A cancel applies in any phase, so the dialog stays valid and shows what it would stop now. */
function askToCancel(asked: Pipeline): void {
  const { id } = asked;
  const now = ({ state }: Snapshot): Pipeline => state?.pipelines.get(id) ?? asked;
  ask({
    title: `Cancel pipeline/${id}?`,
    changed: (snapshot) => (now(snapshot).endedAt === null ? undefined : `It is ${now(snapshot).state} already.`),
    will: (snapshot) => {
      const { phase, state, driver, isDriven, phases } = now(snapshot);
      const left = phases.filter((one) => !isDone(one)).length;
      const stops =
        state === 'running' && isDriven
          ? `${driver ?? 'Its driver'} stops the command of ${phase ?? 'its phase'} first; what it held becomes free.`
          : 'None of its commands runs; what it holds becomes free.';
      return [
        {
          sign: 'danger',
          text: `It ends for good: ${left} of ${phases.length} phases are not done, and never will be.`,
        },
        { sign: 'held', text: stops },
        RECORDED,
      ];
    },
    ...{ role: 'administrator', method: 'POST', path: `/v1${routeOf(`pipeline/${id}`)}/cancel` },
    body: { expected: lifeOf(asked) },
    ...{ reason: 'reason', label: 'Cancel the pipeline' },
    done: (answer) => `pipeline/${id} is ${object(answer)['outcome'] === 'cancelling' ? 'being ' : ''}cancelled`,
  });
}
