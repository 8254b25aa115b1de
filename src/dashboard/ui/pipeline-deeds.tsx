/** Resume and cancel, for administrators; a server that runs no commands cannot resume. */
import type { JSX } from 'preact';
import type { Loaded, Snapshot } from '../live/store.ts';
import { movedOn } from '../model/expected.ts';
import { isDone, routeOf } from '../model/needs.ts';
import { object } from '../model/read.ts';
import { shortened } from '../model/text.ts';
import type { Pipeline } from '../model/types.ts';
import { ask, whyNot, type Will } from './app.ts';
import { Deed } from './parts.tsx';

export function PipelineDeeds({ of, snapshot }: { of: Pipeline; snapshot: Loaded }): JSX.Element {
  const may = whyNot(snapshot, 'administrator');
  const noCommands = 'This server runs no commands: start it with --allow-commands';
  const not = may ?? (snapshot.state.allowsCommands ? undefined : noCommands);
  const isOver = of.endedAt !== null;
  const asksPerson = of.blocked?.on === 'person';
  const phase = shortened(of.phase ?? 'its next phase', 80);
  const question = asksPerson ? of.blocked.question : null;
  const failed = of.phases.find(({ state }) => state === 'failed')?.name;
  const decided = question === null ? {} : { question };
  const resume = (
    name: string,
    label: string,
    title: string,
    will: Will[number],
    body: Readonly<Record<string, unknown>>,
  ) => (
    <Deed
      label={`${name}…`}
      not={not}
      onClick={() =>
        ask({
          ...{ title, label, will: [will, RECORDED], changed: ({ state }) => movedOn(of, state) },
          ...{ role: 'administrator', method: 'POST', path: `/v1${routeOf(`pipeline/${of.id}`)}/resume` },
          body: { ...body, expected: { ...lifeOf(of), state: of.state, phase: of.phase } },
          done: `pipeline/${of.id} goes on`,
        })
      }
    />
  );
  return (
    <>
      {asksPerson &&
        resume(
          'Run again',
          'Run it again',
          `Run ${phase} of pipeline/${of.id} again?`,
          { sign: 'held', text: `This server runs the command of ${phase} once more, from its beginning.` },
          { decision: 'rerun', ...decided },
        )}
      {asksPerson &&
        resume(
          'Skip',
          'Skip it',
          `Skip ${phase} of pipeline/${of.id}?`,
          {
            sign: 'danger',
            text: `The pipeline goes on as if ${phase} were done, although its command may have stopped halfway.`,
          },
          { decision: 'skip', ...decided },
        )}
      {!isOver &&
        !of.isDriven &&
        !asksPerson &&
        resume(
          'Resume',
          'Resume',
          `Resume pipeline/${of.id}?`,
          { sign: 'held', text: `This server drives it from ${phase} on.` },
          {},
        )}
      {of.state === 'failed' &&
        failed !== undefined &&
        resume(
          'Start again',
          'Start again',
          `Start pipeline/${of.id} again from ${failed}?`,
          { sign: 'held', text: `This server runs ${failed} and what comes after it; earlier phases stay done.` },
          { from: failed },
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
