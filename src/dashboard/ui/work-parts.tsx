/** What pages of tasks, pipelines and members have in common. */
import type { JSX } from 'preact';
import { claimedSince } from '../model/expected.ts';
import { shortened, visible } from '../model/text.ts';
import { plural } from '../model/time.ts';
import type { Happening, Task } from '../model/types.ts';
import { shownText } from '../model/work.ts';
import { items } from '../model/read.ts';
import { routeOf } from '../model/needs.ts';
import { ask } from './app.ts';
import { At, Name, Panel } from './parts.tsx';
import { type Sign, SignalSign } from './signs.tsx';

/** Any JSON, or what a command printed, as text. */
export function Printed({ of, label }: { of: unknown; label: string }): JSX.Element {
  const text = typeof of === 'string' ? of : (JSON.stringify(of, null, 2) ?? '');
  return (
    <pre class="printed" tabIndex={0} role="region" aria-label={label}>
      {shownText(text)}
    </pre>
  );
}

const MOST = 50;

/** Lists events, the newest first. */
export function Events({ of }: { of: readonly Happening[] }): JSX.Element {
  const shown = of.slice(-MOST).toReversed();
  return (
    <Panel title="Events" aside={of.length > MOST ? `the last ${MOST} of ${of.length}` : 'newest first'}>
      {shown.length === 0 && <p class="inside soft">None in the last hour, or the store has forgotten them.</p>}
      <ul>
        {shown.map((event) => (
          <li class="row happenings" key={event.id}>
            <At at={event.at} class="soft" />
            <code class="cut">{visible(event.type)}</code>
            <span class="cut">{event.holder === '' ? '' : <Name of={event.holder} />}</span>
            <span class="cut soft spare">{told(event)}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

const TOLD = ['phase', 'attempt', 'attempts', 'on', 'why', 'reason', 'by'];

function told(event: Happening): string {
  const words = TOLD.filter((field) => ['string', 'number'].includes(typeof event[field])).map(
    (field) => `${field} ${String(event[field])}`,
  );
  const reasons = items(event['reasons']).map(String);
  return shortened([...words, ...reasons].join(' · '), 300);
}

export function askToRetry(task: Task): void {
  const { id, failures, losses, reason, attempts } = task;
  const why = reason === null ? '' : ` It failed last because: ${shortened(reason, 200)}.`;
  ask({
    title: `Retry task/${id}?`,
    changed: ({ state }) => claimedSince(task, state),
    will: [
      { sign: 'pending', text: `It becomes pending again, with all its retries.${why}` },
      { sign: 'held', text: 'The next worker that can do it gets it, perhaps at once.' },
      {
        sign: 'clear',
        text: `An event records it. So far: failed ${plural(failures, 'time')}, ${plural(losses, 'worker')} lost.`,
      },
    ],
    ...{ role: 'worker', resource: `task/${id}`, action: 'retry', body: { attempts } },
    ...{ label: 'Retry', done: `task/${id} is pending again` },
  });
}

export const TASK_SIGN: Readonly<Record<Task['status'], Sign>> = {
  pending: 'pending',
  running: 'held',
  complete: 'clear',
  failed: 'danger',
};

/** A task by its name, with its status in words. */
export function TaskRow({ id, task }: { id: string; task: Task | undefined }): JSX.Element {
  return (
    <a class="row named" href={`#${routeOf(`task/${id}`)}`} data-row={`task/${id}`}>
      <SignalSign is={task === undefined ? 'unknown' : TASK_SIGN[task.status]} label="" />
      <Name of={id} />
      <span class="right soft">{task?.status ?? 'not in sight'}</span>
    </a>
  );
}
