/** All pipelines, each as a short line of phases; those that need a person come first. */
import type { JSX } from 'preact';
import type { Loaded } from '../live/store.ts';
import { lookOf, pipelinesShown } from '../model/line.ts';
import { routeOf } from '../model/needs.ts';
import { shortened } from '../model/text.ts';
import { count, plural } from '../model/time.ts';
import type { Pipeline, PipelineState } from '../model/types.ts';
import { WindowedList } from '../ui/list.tsx';
import { Choices, FilterField, Heads, ListHead, NoneFits } from '../ui/list-parts.tsx';
import { Name, Nothing, Since } from '../ui/parts.tsx';
import { type Sign, SignalSign } from '../ui/signs.tsx';

export const PIPELINE_SIGN: Readonly<Record<PipelineState, Sign>> = {
  pending: 'pending',
  running: 'held',
  blocked: 'danger',
  done: 'clear',
  failed: 'danger',
  cancelled: 'unknown',
};
const STATES: readonly (readonly [string, string])[] = [
  ['', 'All'],
  ['blocked', 'Blocked'],
  ['running', 'Running'],
  ['failed', 'Failed'],
  ['done', 'Done'],
];

export function Pipelines({ snapshot }: { snapshot: Loaded }): JSX.Element {
  const { state, route } = snapshot;
  const { q = '', is = '' } = route.filters;
  const all = [...state.pipelines.values()];
  const rows = pipelinesShown(state, q, is);
  const of = (wanted: PipelineState): number => all.filter((one) => one.state === wanted).length;
  return (
    <>
      <ListHead title="Pipelines">
        {count(all.length)} · {count(of('running'))} running · {count(of('done'))} done
        {of('blocked') > 0 && <span class="red strong">· {count(of('blocked'))} blocked</span>}
        {of('failed') > 0 && <span class="red strong">· {count(of('failed'))} failed</span>}
      </ListHead>
      {all.length === 0 ? (
        <Nothing in="Pipelines" title="No pipeline yet" command="signalbox pipeline run release.yaml --id release-1">
          A pipeline is a run of phases that outlives the process that drives it. Write a runbook and run it:
        </Nothing>
      ) : (
        <>
          <div class="tools line">
            <FilterField by="id, name, phase or driver" hint="Id, phase or driver (F)" now={q} />
            <Choices of={STATES} now={is} filter="is" />
          </div>
          <section class="panel" aria-label="Pipelines">
            <Heads class="pipelines" left={['Pipeline', 'Line', 'State', 'Driver']} right={['Since']} />
            <WindowedList
              rows={rows}
              heights={[40, 64]}
              keyOf={(one: Pipeline) => one.id}
              draw={(one: Pipeline) => <PipelineRow of={one} />}
              label="Pipelines"
            />
            {rows.length === 0 && (
              <NoneFits of={plural(all.length, 'pipeline')} is={is} q={q} in="id, name, phase or driver" />
            )}
          </section>
        </>
      )}
    </>
  );
}

/** The phases as a row of small cells. */
export function PhaseStrip({ of }: { of: Pipeline }): JSX.Element {
  return (
    <span class="mini line" aria-hidden="true">
      {of.phases.map((phase) => (
        <i key={phase.name} class={lookOf(of, phase)} />
      ))}
    </span>
  );
}

function PipelineRow({ of }: { of: Pipeline }): JSX.Element {
  const isStopped = of.state === 'blocked' || of.state === 'failed';
  const since = of.endedAt ?? of.blocked?.since ?? of.startedAt;
  const [reason = ''] = of.blocked?.reasons ?? [];
  const why = of.state === 'failed' ? (of.reason ?? '') : reason;
  return (
    <a class="row pipelines" href={`#${routeOf(`pipeline/${of.id}`)}`} data-row={`pipeline/${of.id}`}>
      <span class="line">
        <SignalSign is={PIPELINE_SIGN[of.state]} label="" />
        <Name of={of.id} />
      </span>
      <PhaseStrip of={of} />
      <span class="cut">
        <span class={isStopped ? 'red strong' : ''}>{of.state}</span>
        {of.phase !== null && (
          <span class="soft">
            {' '}
            {of.state === 'blocked' ? 'at' : 'in'} {shortened(of.phase, 40)}
          </span>
        )}
        {why !== '' && <span class="soft">: {shortened(why, 160)}</span>}
      </span>
      <span class="cut soft spare">{of.driver === null ? '–' : <Name of={of.driver} />}</span>
      <span class="right soft">{since === null ? '–' : <Since at={since} />}</span>
    </a>
  );
}
