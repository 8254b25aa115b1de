/** A view that is still to come. */
import type { JSX } from 'preact';
import { Nothing, Panel } from '../ui/parts.tsx';

export function NotYet(): JSX.Element {
  return (
    <>
      <h1 class="unseen">To come</h1>
      <Panel title="To come">
        <Nothing title="This view is being built" command="signalbox status">
          Until then the command line shows it:
        </Nothing>
      </Panel>
    </>
  );
}
