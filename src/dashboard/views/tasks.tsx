/** The board of tasks: what waits for others, what is ready, who runs what, what is done and what failed. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Loaded } from '../live/store.ts';
import { routeOf } from '../model/needs.ts';
import { shortened } from '../model/text.ts';
import { count, duration, plural } from '../model/time.ts';
import type { Task } from '../model/types.ts';
import { ageOf, type Column, COLUMNS, taskBoard, waitsOn } from '../model/work.ts';
import { whyNot } from '../ui/app.ts';
import { useNarrow } from '../ui/list.tsx';
import { Choices, FilterField, ListHead, NoneFits } from '../ui/list-parts.tsx';
import { Button, Deed, Name, Nothing, Since } from '../ui/parts.tsx';
import { type Sign, SignalSign } from '../ui/signs.tsx';
import { askToRetry } from '../ui/work-parts.tsx';

const LOOKS: Readonly<Record<Column, { readonly title: string; readonly sign: Sign; readonly none: string }>> = {
  waiting: { title: 'Waiting', sign: 'unknown', none: 'None waits for another.' },
  ready: { title: 'Ready', sign: 'pending', none: 'Nothing to claim.' },
  running: { title: 'Running', sign: 'held', none: 'No worker has one.' },
  done: { title: 'Done', sign: 'clear', none: 'None yet.' },
  failed: { title: 'Failed', sign: 'danger', none: 'None failed.' },
};

export function Tasks({ snapshot }: { snapshot: Loaded }): JSX.Element {
  const { state, route, now } = snapshot;
  const { q = '', is = '' } = route.filters;
  const all = Object.values(state.counts).reduce((sum, one) => sum + one, 0);
  const board = taskBoard(state, q, now);
  const shown = COLUMNS.filter((column) => !COLUMNS.includes(is as Column) || column === is);
  const found = shown.reduce((sum, column) => sum + board[column].length, 0);
  return (
    <>
      <ListHead title="Tasks">
        {count(all)} · {count(state.counts.pending)} pending · {count(state.counts.running)} running
        {state.counts.failed > 0 && <span class="red strong">· {count(state.counts.failed)} failed</span>}
      </ListHead>
      {all === 0 ? (
        <Nothing in="Tasks" title="No task yet" command={`signalbox task publish build-1 --data '{"commit":"1a2b3c"}'`}>
          A task is work for any worker that can do it; exactly one gets it. Publish one:
        </Nothing>
      ) : (
        <>
          <div class="tools line">
            <FilterField by="id, owner, capability or reason" hint="Id, owner, capability (F)" now={q} />
            <Choices
              of={[['', 'All'], ...COLUMNS.map((one) => [one, LOOKS[one].title] as const)]}
              now={is}
              filter="is"
            />
          </div>
          {found === 0 && (q !== '' || is !== '') ? (
            <section class="panel">
              <NoneFits of={plural(all, 'task')} is={is} q={q} in="id, owner, capabilities or reason" />
            </section>
          ) : (
            <div class={`board ${shown.length === 1 ? 'single' : ''}`}>
              {shown.map((column) => (
                <TaskColumn key={column} column={column} tasks={board[column]} snapshot={snapshot} />
              ))}
            </div>
          )}
        </>
      )}
    </>
  );
}

interface ColumnProps {
  readonly column: Column;
  readonly tasks: readonly Task[];
  readonly snapshot: Loaded;
}

function TaskColumn({ column, tasks, snapshot }: ColumnProps): JSX.Element {
  const step = useNarrow() ? 6 : 30;
  const [more, setMore] = useState(0);
  const { title, sign, none } = LOOKS[column];
  const most = step + more;
  return (
    <section class="column" aria-label={title}>
      <header class="line">
        <SignalSign is={sign} label="" />
        <h2 class="grow">{title}</h2>
        <span class="num soft">{count(tasks.length)}</span>
      </header>
      {tasks.length === 0 && <p class="faint small">{none}</p>}
      <ul>
        {tasks.slice(0, most).map((task) => (
          <TaskCard key={task.id} task={task} column={column} snapshot={snapshot} />
        ))}
      </ul>
      {tasks.length > most && <Button onClick={() => setMore(more + 30)}>{count(tasks.length - most)} more</Button>}
    </section>
  );
}

type CardProps = Omit<ColumnProps, 'tasks'> & { readonly task: Task };

function TaskCard({ task, column, snapshot }: CardProps): JSX.Element {
  const { id, priority, capabilities, attempts, retries } = task;
  const since = ageOf(task);
  return (
    <li class="card">
      <div class="line">
        <a class="grow strong cut" href={`#${routeOf(`task/${id}`)}`} data-row={`task/${id}`}>
          <Name of={id} />
        </a>
        {since !== null && <Since at={since} class="soft small" />}
      </div>
      <div class="line small">
        <span class="grow cut">
          <What {...{ task, column, snapshot }} />
        </span>
        {attempts > 1 && (
          <span class="soft num">
            try {attempts}
            {retries > 0 && ` of ${Math.max(retries + 1, attempts)}`}
          </span>
        )}
        {column === 'failed' && (
          <Deed class="small" label="Retry" not={whyNot(snapshot, 'worker')} onClick={() => askToRetry(task)} />
        )}
      </div>
      {(capabilities.length > 0 || priority !== 0) && column !== 'done' && (
        <div class="tags">
          {priority !== 0 && <span class="tag">priority {count(priority)}</span>}
          {capabilities.slice(0, 3).map((one) => (
            <code class="tag cut" key={one}>
              {shortened(one, 60)}
            </code>
          ))}
          {capabilities.length > 3 && <span class="faint small">+{capabilities.length - 3}</span>}
        </div>
      )}
    </li>
  );
}

/** Shows the one thing that matters in this column. */
function What({ task, column, snapshot: { now, state } }: CardProps): JSX.Element {
  const { owner, reason, retryAt, publishedBy } = task;
  const [first, ...others] = waitsOn(state, task);
  if (column === 'failed') return <span class="red">{shortened(reason ?? 'no reason given', 120)}</span>;
  if (column === 'running') return <Name of={owner ?? 'unknown'} />;
  if (first !== undefined && column === 'waiting') {
    return (
      <span class="soft line">
        after <Name of={first} />
        {others.length > 0 && ` +${count(others.length)}`}
      </span>
    );
  }
  if (column === 'waiting') return <span class="amber">again in {duration((retryAt ?? now) - now)}</span>;
  return publishedBy === null ? (
    <span class="faint">{column === 'done' ? 'complete' : 'free to claim'}</span>
  ) : (
    <span class="soft line">
      from <Name of={publishedBy} />
    </span>
  );
}
