/** One pipeline: its line of phases, why it waits, what wakes it, and what its commands printed. */
import { Choices } from '../ui/list-parts.tsx';
import { PageHead } from '../ui/page-head.tsx';
import type { JSX } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Loaded } from '../live/store.ts';
import { logsIn, lookOf, reasonsOf, wakesOf } from '../model/line.ts';
import { routeOf } from '../model/needs.ts';
import { items, type Json, object } from '../model/read.ts';
import { shortened, visible } from '../model/text.ts';
import { clock, count, duration, plural } from '../model/time.ts';
import type { Phase, Pipeline } from '../model/types.ts';
import { Facts, Name, Nothing, Panel, Since } from '../ui/parts.tsx';
import { usePast } from '../ui/past.ts';
import { PipelineDeeds } from '../ui/pipeline-deeds.tsx';
import { useRead } from '../ui/reading.ts';
import { type Sign, SignalSign } from '../ui/signs.tsx';
import { Events, Printed } from '../ui/work-parts.tsx';
import { PIPELINE_SIGN } from './pipelines.tsx';

/** Reads again after this time: output of a command sends no event. */
const LOOK_AGAIN_MS = 3_000;

export function OnePipeline({ snapshot, name }: { snapshot: Loaded; name: string }): JSX.Element {
  const { state, now } = snapshot;
  const resource = `pipeline/${name}`;
  const past = usePast(state, resource, now);
  const of = state.pipelines.get(name);
  const isUnderWay = of !== undefined && of.endedAt === null;
  const tick = isUnderWay ? Math.floor(now / LOOK_AGAIN_MS) : 0;
  const read = useRead(`/v1${routeOf(resource)}`, `${of?.state} ${of?.phase} ${tick}`);
  if (of === undefined) {
    return (
      <>
        <h1 class="unseen">{visible(name)}</h1>
        <Nothing in="Pipeline" title="There is no such pipeline" command="signalbox pipeline list">
          It was forgotten, or never started. The command line lists all:
        </Nothing>
        {past.length > 0 && <Events of={past} />}
      </>
    );
  }
  const done = of.phases.filter((phase) => lookOf(of, phase) === 'done').length;
  return (
    <>
      <Head of={of} snapshot={snapshot} />
      <div class="grid">
        <Panel title="Line" aside={`${count(done)} of ${plural(of.phases.length, 'phase')} done`}>
          <Line of={of} read={read} now={now} />
        </Panel>
        {of.blocked !== null && <Why of={of} read={read} />}
        {(of.state === 'failed' || of.state === 'cancelled') && (
          <Panel title={of.state === 'failed' ? 'Why it failed' : 'Why it was cancelled'}>
            <Printed of={of.reason ?? 'No reason was given.'} label="Why it ended" />
          </Panel>
        )}
        <Log read={read} />
        <Outputs of={object(read?.['outputs'])} />
        <Events of={past} />
      </div>
    </>
  );
}

function Head({ of, snapshot }: { of: Pipeline; snapshot: Loaded }): JSX.Element {
  const { state, phase, blocked, driver, startedAt, endedAt } = of;
  const since = endedAt ?? blocked?.since ?? null;
  const isDead = state === 'running' && !of.isDriven;
  return (
    <PageHead
      sign={isDead ? 'danger' : PIPELINE_SIGN[state]}
      label={state}
      title={{ kind: 'pipeline', name: of.id }}
      under={
        <>
          <span class={state === 'blocked' || state === 'failed' ? 'red strong' : ''}>
            {of.isCancelling && endedAt === null
              ? 'Being cancelled'
              : `${state[0]?.toUpperCase() ?? ''}${state.slice(1)}`}
          </span>
          {phase !== null && (
            <span>
              at <b class="strong">{shortened(phase, 60)}</b>
            </span>
          )}
          {since !== null && (
            <span>
              for <Since at={since} class={state === 'blocked' ? 'red strong' : ''} />
            </span>
          )}
          <span class="faint dot">·</span>
          {of.isDriven && driver !== null ? (
            <span class="line">
              driven by <Name of={driver} />
            </span>
          ) : (
            <span class={isDead ? 'red strong' : ''}>nobody drives it</span>
          )}
          {startedAt !== null && <span class="soft">· started {clock(startedAt)}</span>}
        </>
      }
    >
      <PipelineDeeds of={of} snapshot={snapshot} />
    </PageHead>
  );
}

const SIGNS: Readonly<Record<ReturnType<typeof lookOf>, Sign>> = {
  done: 'clear',
  now: 'held',
  stopped: 'danger',
  later: 'unknown',
};

interface LineProps {
  readonly of: Pipeline;
  readonly read: Json | undefined;
  readonly now: number;
}

function Line({ of, read, now }: LineProps): JSX.Element {
  const details = items(read?.['phases']).map(object);
  const line = useRef<HTMLDivElement>(null);
  // A long line begins at the phase that matters, not at one that was done long ago.
  useLayoutEffect(() => {
    const [box, step] = [line.current, line.current?.querySelector('[aria-current=step]')];
    if (box === null || step === null || step === undefined) return;
    const [whole, part] = [box.getBoundingClientRect(), step.getBoundingClientRect()];
    box.scrollLeft += part.left - whole.left - (whole.width - part.width) / 2;
  }, [of.phase, of.phases.length]);
  return (
    <div class="scrolls" tabIndex={0} role="region" aria-label="Line of phases" ref={line}>
      <ol class="phase-line">
        {of.phases.map((phase, place) => {
          const look = lookOf(of, phase);
          return (
            <li key={phase.name} class={look} aria-current={phase.name === of.phase ? 'step' : undefined}>
              <SignalSign is={SIGNS[look]} size={look === 'stopped' ? 22 : 16} label="" />
              <div class="phase-box cut">{shortened(phase.name, 60)}</div>
              <div class="below soft small">
                <span class={look === 'stopped' ? 'red' : ''}>{said(of, phase, now)}</span>
                <span>{more(details[place])}</span>
              </div>
            </li>
          );
        })}
      </ol>
    </div>
  );
}

function said(of: Pipeline, phase: Phase, now: number): string {
  const { state, startedAt, endedAt, attempt } = phase;
  const took = startedAt === null ? '' : ` ${duration((endedAt ?? now) - startedAt)}`;
  const runs = attempt > 1 ? ` · run ${attempt}` : '';
  if (of.state === 'blocked' && phase.name === of.phase) {
    const reasons = of.blocked?.reasons.length ?? 0;
    return of.blocked?.on === 'person' ? 'asks a person' : `held at the signal, ${plural(reasons, 'reason')}`;
  }
  if (state === 'waiting') return 'to come';
  return `${state}${took}${runs}`;
}

function more(detail: Json | undefined): string {
  const tokens = Object.keys(object(detail?.['tokens']));
  const ended = typeof detail?.['ended'] === 'string' && detail['state'] !== 'done' ? [detail['ended']] : [];
  const warnings = Array.isArray(detail?.['warnings']) ? [plural(detail['warnings'].length, 'warning')] : [];
  return shortened(
    [...ended, ...(tokens.length > 0 ? [`held ${tokens.join(', ')}`] : []), ...warnings].join(' · '),
    200,
  );
}

function Why({ of, read }: Omit<LineProps, 'now'>): JSX.Element {
  const reasons = reasonsOf(of, read);
  const wakes = wakesOf(of, read);
  const isHolds = of.blocked?.on === 'holds';
  return (
    <>
      <Panel class="w8" title="Why it waits" aside={`${plural(reasons.length, 'reason')}, all of them`}>
        <ul>
          {reasons.map(({ guard, reason, outlook }) => (
            <li class="row reasons" key={`${guard} ${reason}`}>
              <SignalSign is={outlook === 'unknown' ? 'unknown' : 'danger'} label="" />
              <code class="cut">{shortened(guard, 80)}</code>
              {isHolds ? (
                <a class="more" href={`#${routeOf(reason)}`}>
                  {visible(reason)}
                </a>
              ) : (
                <span>{shortened(reason, 1000)}</span>
              )}
            </li>
          ))}
        </ul>
      </Panel>
      <Panel class="w4 tall" title="What wakes it">
        <ul class="wakes inside">
          {wakes.map((one) => (
            <li key={one} class="line">
              <SignalSign is="pending" label="" />
              <span>{shortened(one, 300)}</span>
            </li>
          ))}
          {wakes.length === 0 && <li class="soft">Its driver has not said.</li>}
        </ul>
        {!of.isDriven && <p class="note line red">Nobody drives it: nothing wakes it until a driver resumes it.</p>}
      </Panel>
    </>
  );
}

function Log({ read }: Pick<LineProps, 'read'>): JSX.Element {
  const logs = logsIn(read);
  const [chosen, choose] = useState('');
  const shown = logs.find(({ key }) => key === chosen) ?? logs.at(-1);
  return (
    <Panel title="Log" aside={shown === undefined ? 'nothing printed yet' : 'what the commands printed'}>
      {logs.length > 1 && (
        <div class="inside scrolls log-choice">
          <Choices
            of={logs
              .slice(-12)
              .map(({ key, phase, run }) => [key, `${shortened(phase, 30)}${run > 1 ? ` ${run}` : ''}`])}
            now={shown?.key ?? ''}
            filter={choose}
          />
        </div>
      )}
      {shown === undefined ? (
        <p class="inside soft">A phase that prints something shows it here within seconds.</p>
      ) : (
        <>
          {shown.leftOut > 0 && <p class="foot">{plural(shown.leftOut, 'byte')} in the middle were left out</p>}
          <Printed of={shown.text} label={`Log of ${visible(shown.phase)}`} />
        </>
      )}
    </Panel>
  );
}

function Outputs({ of }: { of: Json }): JSX.Element | null {
  const all = Object.entries(of);
  if (all.length === 0) return null;
  return (
    <Panel title="Outputs" aside="what phases passed on">
      <Facts of={all.map(([name, value]) => [name, shortened(String(value), 300), 'mono'])} />
    </Panel>
  );
}
