/** One task: its owner, its dependencies, its data and its result. */
import type { JSX } from 'preact';
import type { Loaded } from '../live/store.ts';
import { claimedSince } from '../model/expected.ts';
import { routeOf } from '../model/needs.ts';
import { visible } from '../model/text.ts';
import { count, duration } from '../model/time.ts';
import type { Task } from '../model/types.ts';
import { ageOf, columnOf, dependentsOf, waitsOn } from '../model/work.ts';
import { ask, whyNot } from '../ui/app.ts';
import { At, Deed, Facts, Name, Nothing, Panel, Since } from '../ui/parts.tsx';
import { usePast } from '../ui/past.ts';
import { useRead } from '../ui/reading.ts';
import { PageHead } from '../ui/page-head.tsx';
import { askToRetry, Events, Printed, TASK_SIGN, TaskRow } from '../ui/work-parts.tsx';

export function OneTask({ snapshot, name }: { snapshot: Loaded; name: string }): JSX.Element {
  const { state, now } = snapshot;
  const resource = `task/${name}`;
  const past = usePast(state, resource, now);
  const task = state.tasks.get(name);
  const read = useRead(`/v1${routeOf(resource)}`, `${task?.status} ${task?.attempts} ${task?.endedAt}`);
  if (task === undefined) {
    return (
      <>
        <h1 class="unseen">{visible(name)}</h1>
        <Nothing in="Task" title="There is no such task" command="signalbox task list">
          It was forgotten, or it is among more than the board shows. The command line lists all:
        </Nothing>
        {past.length > 0 && <Events of={past} />}
      </>
    );
  }
  const waits = waitsOn(state, task);
  const followers = dependentsOf(state, name);
  const shown = followers.slice(0, 20);
  return (
    <>
      <Head task={task} snapshot={snapshot} />
      <div class="grid">
        <TaskFacts task={task} now={now} />
        <div class="w7 stack">
          <Panel title="Data" aside="what the worker is given">
            {read === undefined ? <p class="inside soft">…</p> : <Printed of={read['data']} label="Data" />}
          </Panel>
          {task.status !== 'pending' && task.status !== 'running' && (
            <Panel title="Result">
              {task.status === 'failed' ? (
                <Printed of={task.reason ?? 'No reason was given.'} label="Why it failed" />
              ) : (
                <Printed of={read?.['result'] ?? null} label="Result" />
              )}
            </Panel>
          )}
        </div>
        <Panel
          class="w6"
          title="Depends on"
          aside={
            task.dependsOn.length === 0
              ? 'nothing'
              : waits.length === 0
                ? 'all are complete'
                : `${count(waits.length)} to go`
          }
        >
          {task.dependsOn.length === 0 && <p class="inside soft">It waits for no other task.</p>}
          {task.dependsOn.map((id) => (
            <TaskRow key={id} id={id} task={state.tasks.get(id)} />
          ))}
        </Panel>
        <Panel class="w6" title="Waiting for it" aside={count(followers.length)}>
          {shown.length === 0 && <p class="inside soft">No other task waits for this one.</p>}
          {shown.map((one) => (
            <TaskRow key={one.id} id={one.id} task={one} />
          ))}
          {followers.length > shown.length && <p class="foot">and {count(followers.length - shown.length)} more</p>}
        </Panel>
        <Events of={past} />
      </div>
    </>
  );
}

const WORDS = { waiting: 'Waiting', ready: 'Ready to be claimed', running: 'Running', done: 'Done', failed: 'Failed' };

function Head({ task, snapshot }: { task: Task; snapshot: Loaded }): JSX.Element {
  const column = columnOf(snapshot.state, task, snapshot.now);
  const since = ageOf(task);
  return (
    <PageHead
      sign={TASK_SIGN[task.status]}
      label={WORDS[column]}
      title={{ kind: 'task', name: task.id }}
      under={
        <>
          <span class={column === 'failed' ? 'red strong' : ''}>{WORDS[column]}</span>
          {since !== null && (
            <span>
              for <Since at={since} />
            </span>
          )}
          {task.owner !== null && (
            <>
              <span class="faint dot">·</span>
              <span class="line">
                by <Name of={task.owner} />
              </span>
            </>
          )}
        </>
      }
    >
      {task.status === 'failed' && (
        <Deed label="Retry…" not={whyNot(snapshot, 'worker')} onClick={() => askToRetry(task)} />
      )}
      {task.status === 'complete' && (
        <Deed label="Do it again…" not={whyNot(snapshot, 'worker')} onClick={() => askAgain(task)} />
      )}
      {task.status === 'running' && (
        <Deed
          class="danger"
          label="Take it back…"
          not={whyNot(snapshot, 'administrator')}
          onClick={() => askToTake(task)}
        />
      )}
    </PageHead>
  );
}

function askAgain(task: Task): void {
  const { id, attempts } = task;
  ask({
    title: `Do task/${id} again?`,
    changed: ({ state }) => claimedSince(task, state),
    will: [
      { sign: 'pending', text: 'It becomes pending again, and its result is given up.' },
      { sign: 'held', text: 'The next worker that can do it gets it.' },
    ],
    ...{ role: 'worker', resource: `task/${id}`, action: 'requeue', body: { attempts } },
    ...{ label: 'Do it again', done: `task/${id} is pending again` },
  });
}

function askToTake(task: Task): void {
  const { id, owner, claimedAt, token } = task;
  const had = claimedAt === null ? '' : `, which has had it since ${new Date(claimedAt).toLocaleTimeString()},`;
  ask({
    title: `Take task/${id} from its worker?`,
    changed: ({ state }) => claimedSince(task, state),
    will: [
      { sign: 'danger', text: `${owner ?? 'Its owner'}${had} loses it: whatever it hands in later is refused.` },
      { sign: 'pending', text: 'The task becomes pending again, and another worker may claim it at once.' },
      { sign: 'clear', text: 'An event records it with your reason.' },
    ],
    ...{ resource: `task/${id}`, action: 'release', needsReason: true },
    body: { force: true, ...(token !== null && { token }) },
    ...{ label: 'Take it back', done: `task/${id} was taken back` },
  });
}

function TaskFacts({ task, now }: { task: Task; now: number }): JSX.Element {
  const { publishedAt, publishedBy, claimedAt, endedAt, retryAt, capabilities, token } = task;
  const took = claimedAt === null ? null : (endedAt ?? (task.status === 'running' ? now : claimedAt)) - claimedAt;
  return (
    <Panel class="w5" title="The task">
      <Facts
        of={[
          ['Published', publishedAt === null ? '–' : <At at={publishedAt} />],
          publishedBy !== null && ['Published by', <Name of={publishedBy} />],
          ['Claimed', claimedAt === null ? 'not yet' : <At at={claimedAt} />],
          took !== null && took > 0 && [task.status === 'running' ? 'Running for' : 'Took', duration(took)],
          token !== null && ['Token', count(token), 'num'],
          ['Priority', task.priority, 'num'],
          ['Attempts', count(task.attempts), 'num'],
          ['Failures', `${count(task.failures)} of ${count(task.retries + 1)} allowed`, 'num'],
          ['Workers lost', count(task.losses), 'num'],
          retryAt !== null && retryAt > now && ['Tried again in', duration(retryAt - now)],
          ['Needs', capabilities.length === 0 ? 'any worker' : capabilities.map(visible).join(', '), 'whole'],
        ]}
      />
    </Panel>
  );
}
