/** One member: whether it lives, and what it owns. */
import type { JSX } from 'preact';
import type { Loaded } from '../live/store.ts';
import { crewOf, heldBy, isOf } from '../model/crew.ts';
import { routeOf } from '../model/needs.ts';
import { shortened } from '../model/text.ts';
import { count, plural } from '../model/time.ts';
import { Name, Panel, Since } from '../ui/parts.tsx';
import { usePast } from '../ui/past.ts';
import { PageHead } from '../ui/page-head.tsx';
import { SignalSign } from '../ui/signs.tsx';
import { Events, Printed, TaskRow } from '../ui/work-parts.tsx';

const MOST = 200;

export function OneMember({ snapshot, name }: { snapshot: Loaded; name: string }): JSX.Element {
  const { state, now } = snapshot;
  const past = usePast(state, `member/${name}`, now);
  const mate = crewOf(state, now).find(({ id }) => id === name);
  const member = mate?.member ?? null;
  const held = heldBy(state, name);
  const tasks = [...state.tasks.values()].filter(({ owner }) => owner !== null && isOf(owner, name));
  const assets = member?.assets ?? [];
  return (
    <>
      <PageHead
        sign={member === null ? 'danger' : 'clear'}
        label={member === null ? 'left' : 'alive'}
        title={{ kind: 'member', name }}
        under={
          <>
            {member === null ? <span class="red strong">Not a member now</span> : <span>Alive</span>}
            {member?.joinedAt !== null && member !== null && (
              <span>
                for <Since at={member.joinedAt} />
              </span>
            )}
            {mate?.isCoordinator === true && <b class="strong">· coordinator</b>}
            {mate?.leads.map(({ name: led, epoch }) => (
              <span key={led}>
                · leads <b class="strong">{shortened(led, 60)}</b>, epoch {count(epoch)}
              </span>
            ))}
          </>
        }
      />
      <div class="grid">
        <Panel class="w6" title="Assets" aside={member === null ? 'none' : `weight ${count(member.weight)}`}>
          <div class="inside tags">
            {assets.slice(0, MOST).map((one) => (
              <code class="tag cut" key={one}>
                {shortened(one, 100)}
              </code>
            ))}
            {assets.length > MOST && <span class="soft">and {count(assets.length - MOST)} more</span>}
            {assets.length === 0 && <span class="soft">It owns none.</span>}
          </div>
        </Panel>
        <Panel
          class="w6"
          title="Holds and tasks"
          aside={`${plural(held.length, 'hold')}, ${plural(tasks.length, 'task')}`}
        >
          {held.length + tasks.length === 0 && <p class="inside soft">Nothing under this name.</p>}
          {held.slice(0, MOST).map(({ resource, kind, name: of }) => (
            <a class="row named" href={`#${routeOf(resource)}`} key={resource} data-row={resource}>
              <SignalSign is="held" label="" />
              <Name of={of} kind={kind} />
              <span class="right soft">held</span>
            </a>
          ))}
          {tasks.map((task) => (
            <TaskRow key={task.id} id={task.id} task={task} />
          ))}
        </Panel>
        {member !== null && member.metadata !== null && (
          <Panel title="Metadata">
            <Printed of={member.metadata} label="Metadata" />
          </Panel>
        )}
        <Events of={past} />
      </div>
    </>
  );
}
