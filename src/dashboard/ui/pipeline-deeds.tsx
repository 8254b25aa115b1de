/** Resume and cancel, for administrators; a server that runs no commands cannot resume. */
import type { JSX } from 'preact';
import type { Loaded, Snapshot } from '../live/store.ts';
import type { Will } from '../model/breaking.ts';
import { movedOn } from '../model/expected.ts';
import { isDone } from '../model/needs.ts';
import { object } from '../model/read.ts';
import { shortened } from '../model/text.ts';
import type { Pipeline } from '../model/types.ts';
import { ask, whyNot } from './app.ts';
import { Deed } from './parts.tsx';

export function PipelineDeeds({ of, snapshot }: { of: Pipeline; snapshot: Loaded }): JSX.Element {
  const may = whyNot(snapshot, 'administrator');
  const noCommands = 'This server runs no commands: start it with --allow-commands';
  const not = may ?? (snapshot.state.allowsCommands ? undefined : noCommands);
  return (
    <>
      {resumesOf(of).map(({ name, label, title, will, body }) => (
        <Deed
          key={name}
          label={`${name}…`}
          not={not}
          onClick={() =>
            ask({
              ...{ title, label, will: [will, RECORDED], changed: ({ state }) => movedOn(of, state) },
              ...{ resource: `pipeline/${of.id}`, action: 'resume' },
              body: { ...body, expected: { ...lifeOf(of), state: of.state, phase: of.phase } },
              done: `pipeline/${of.id} goes on`,
            })
          }
        />
      ))}
      {of.endedAt === null && (
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

interface Resume {
  readonly name: string;
  readonly label: string;
  readonly title: string;
  readonly will: Will;
  readonly body: Readonly<Record<string, unknown>>;
}

/** The ways to let it go on that make sense now. */
function resumesOf({ id, phase: at, phases, state, blocked, endedAt, isDriven }: Pipeline): readonly Resume[] {
  const phase = shortened(at ?? 'its next phase', 80);
  if (blocked?.on === 'person') {
    const decided = blocked.question === null ? {} : { question: blocked.question };
    const again = `This server runs the command of ${phase} once more, from its beginning.`;
    const skipped = `The pipeline goes on as if ${phase} were done, although its command may have stopped halfway.`;
    return [
      {
        ...{ name: 'Run again', label: 'Run it again', title: `Run ${phase} of pipeline/${id} again?` },
        ...{ will: { sign: 'held', text: again }, body: { decision: 'rerun', ...decided } },
      },
      {
        ...{ name: 'Skip', label: 'Skip it', title: `Skip ${phase} of pipeline/${id}?` },
        ...{ will: { sign: 'danger', text: skipped }, body: { decision: 'skip', ...decided } },
      },
    ];
  }
  if (endedAt === null && !isDriven) {
    const will = { sign: 'held', text: `This server drives it from ${phase} on.` } as const;
    return [{ name: 'Resume', label: 'Resume', title: `Resume pipeline/${id}?`, will, body: {} }];
  }
  const failed = phases.find((one) => one.state === 'failed')?.name;
  if (state !== 'failed' || failed === undefined) return [];
  const text = `This server runs ${failed} and what comes after it; earlier phases stay done.`;
  const title = `Start pipeline/${id} again from ${failed}?`;
  return [{ name: 'Start again', label: 'Start again', title, will: { sign: 'held', text }, body: { from: failed } }];
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
    ...{ resource: `pipeline/${id}`, action: 'cancel', body: { expected: lifeOf(asked) }, needsReason: true },
    label: 'Cancel the pipeline',
    done: (answer) => `pipeline/${id} is ${object(answer)['outcome'] === 'cancelling' ? 'being ' : ''}cancelled`,
  });
}
