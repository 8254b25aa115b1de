/** Shares one expensive look at a store between the requests that ask for it meanwhile. */
import type { Signalbox } from '../runtime/signalbox.ts';

export function shared<T>(look: (box: Signalbox) => Promise<T>): (box: Signalbox) => Promise<T> {
  const running = new WeakMap<Signalbox, Promise<T>>();
  return (box) => {
    const known = running.get(box);
    if (known !== undefined) return known;
    const begun = look(box).finally(() => running.delete(box));
    running.set(box, begun);
    return begun;
  };
}
