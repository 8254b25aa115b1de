/** Whether something is kept in memory by anything. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { settled } from './outcome.ts';

const ROUNDS = 10;

/** Gives whatever still runs a few turns to let go of it. */
export async function isForgotten(thing: WeakRef<object>): Promise<boolean> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let round = 0; round < ROUNDS && thing.deref() !== undefined; round++) {
    await settled();
    collect();
  }
  return thing.deref() === undefined;
}
