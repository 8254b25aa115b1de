/** Finds out who holds a resource, for the refusal of a request whose time is over. */
import type { Hold } from '../../core/index.ts';
import type { Runtime } from '../runtime.ts';

/** The request has waited long enough: without an answer in this time, its refusal says what is known already. */
const LOOK_MS = 2000;

/** Calls `tell` once: with the holds in the record, or with `known` if the store does not answer in time. */
export function tellHolders(
  runtime: Runtime,
  resource: string,
  known: readonly Hold[],
  tell: (holds: readonly Hold[]) => void,
): void {
  let isTold = false;
  const once = (holds: readonly Hold[]): void => {
    if (isTold) return;
    isTold = true;
    limit.cancel();
    tell(holds);
  };
  const limit = runtime.later(LOOK_MS, () => once(known));
  runtime.writerFor(resource).look(
    ({ state }) => once(state.record.holds as readonly Hold[]),
    () => once(known),
  );
}
