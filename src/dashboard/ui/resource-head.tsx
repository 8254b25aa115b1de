/** The head of the page of a lock or semaphore: its sign and name, who waits and for how long, and its actions. */
import type { ComponentChildren, JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import type { Loaded } from '../live/store.ts';
import { aspectOf, longest } from '../model/needs.ts';
import { count } from '../model/time.ts';
import type { Resource } from '../model/types.ts';
import { connection, whyNot } from './app.ts';
import { askToBreak } from './breaking.ts';
import { Deed, Since } from './parts.tsx';
import { PageHead } from './page-head.tsx';

/** Keeps the resource up to date while its page is open. */
export function useSight(resource: string): void {
  useEffect(() => {
    connection.see([resource]);
    return () => connection.see([]);
  }, [resource]);
}

interface Props {
  readonly of: Resource;
  readonly snapshot: Loaded;
  /** The state, shown before who waits; `then` comes after. */
  readonly says: ComponentChildren;
  readonly then?: ComponentChildren;
  /** What they wait for, if it is shown: `for 3 slots`. */
  readonly wanted?: string;
  readonly breaks: { readonly label: string; readonly nobody: string };
  /** More actions, before the one that breaks it. */
  readonly children?: ComponentChildren;
}

export function ResourceHead({ of, snapshot, says, then, wanted = '', breaks, children }: Props): JSX.Element {
  const { state, now } = snapshot;
  const aspect = aspectOf(state, of, now);
  const oldest = longest(of);
  const not = of.holds.length === 0 ? breaks.nobody : whyNot(snapshot, 'administrator');
  return (
    <PageHead
      sign={aspect}
      title={{ kind: of.kind, name: of.name }}
      under={
        <>
          {says}
          <span class="faint dot">·</span>
          {oldest === undefined ? (
            <span>nobody waits</span>
          ) : (
            <span>
              {count(of.waiting.length)} waiting{wanted}, longest{' '}
              <Since at={oldest.since} class={aspect === 'caution' ? 'amber strong' : 'strong'} />
            </span>
          )}
          {then}
        </>
      }
    >
      {children}
      <Deed class="danger" label={breaks.label} not={not} onClick={() => askToBreak(of.resource)} />
    </PageHead>
  );
}
