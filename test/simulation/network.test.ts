// The network of simulated processes itself.
import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { openMemory } from '../../src/store/index.ts';
import { Faults } from '../../src/testing/simulation/faults.ts';
import { Network, Post } from '../../src/testing/simulation/network.ts';
import { Random } from '../../src/testing/simulation/random.ts';
import { SimulatedProcess, World } from '../../src/testing/simulation/world.ts';

it('listens no longer to the signal of a watch that was cut, however often its process opens another', async () => {
  const random = new Random(1);
  const world = new World(random, false);
  const faults = new Faults(random);
  faults.isStill = true;
  const process = new SimulatedProcess(world, 'p1', 1);
  const bound = { most: 1000, exceeded: () => undefined };
  const network = new Network(world, process, openMemory({ clock: world.clock() }), faults, new Post(false), bound);
  const { signal } = new AbortController();
  for (let time = 0; time < 3; time++) {
    const opening = network.watch({ key: 'a' }, 'now', signal);
    await world.run(world.now + 5000, () => undefined);
    await opening;
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    network.cutWatches();
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  }
});
