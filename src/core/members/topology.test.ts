import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Broadcasts,
  type BroadcastStep,
  newBroadcasts,
  sameTopology,
  sendingFailed,
  timeIsUp,
  type Topology,
  topologyChanged,
} from './topology.ts';

const COOLDOWN_MS = 1000;
const topology = (version: number, members: string): Topology => ({
  version,
  members: [...members].map((id) => ({ id, incarnation: 1, metadata: undefined, weight: 1, assets: [] })),
  coordinator: members[0] ?? null,
});

interface Sent {
  readonly at: number;
  readonly topology: Topology;
}

/** Plays changes at their times, wakes the machine when it asks for it, and records what it sends. */
function play(
  changes: readonly { readonly at: number; readonly members: string }[],
  changed: typeof topologyChanged = topologyChanged,
): readonly Sent[] {
  const sent: Sent[] = [];
  let state: Broadcasts = newBroadcasts(COOLDOWN_MS, undefined, 0);
  let wakeAt: number | undefined;
  const take = (step: BroadcastStep, at: number): void => {
    ({ state, wakeAt } = { wakeAt: undefined, ...step });
    if (step.send !== undefined) sent.push({ at, topology: step.send });
  };
  changes.forEach(({ at, members }, version) => {
    while (wakeAt !== undefined && wakeAt <= at) take(timeIsUp(state, wakeAt), wakeAt);
    take(changed(state, topology(version, members), at), at);
  });
  while (wakeAt !== undefined) take(timeIsUp(state, wakeAt), wakeAt);
  return sent;
}

const changes = fc
  .array(fc.record({ after: fc.oneof(fc.nat(50), fc.nat(3000)), members: fc.constantFrom('a', 'ab', 'b', '') }), {
    minLength: 1,
    maxLength: 40,
  })
  .map((steps) => {
    let at = 0;
    // No change at the very moment a cooldown ends: which of the two comes first is open.
    return steps.map(({ after, members }, place) => ({ at: (at += after) + place / 64, members }));
  });

describe('the broadcast of the topology, whenever it changes', () => {
  const property = (check: (sent: readonly Sent[], steps: readonly { at: number; members: string }[]) => void): void =>
    fc.assert(fc.property(changes, (steps) => check(play(steps), steps)));

  it('is sent at most once per cooldown', () => {
    property((sent) => {
      sent
        .slice(1)
        .forEach(({ at }, place) => expect(at - (sent[place] as Sent).at).toBeGreaterThanOrEqual(COOLDOWN_MS));
    });
  });

  it('is sent at once if the last one was a cooldown ago', () => {
    property((sent, steps) => {
      let last: Topology | undefined;
      steps.forEach(({ at, members }, version) => {
        const before = sent.filter((one) => one.at <= at - COOLDOWN_MS).at(-1);
        const isQuiet = !sent.some((one) => one.at > at - COOLDOWN_MS && one.at < at);
        const isLastOfItsTime = steps[version + 1]?.at !== at && steps[version - 1]?.at !== at;
        last = topology(version, members);
        if (!isQuiet || !isLastOfItsTime || (before !== undefined && sameTopology(before.topology, last))) return;
        expect(sent.some((one) => one.at === at && one.topology.version === version)).toBe(true);
      });
    });
  });

  it('always ends with the last change, at most a cooldown late', () => {
    property((sent, steps) => {
      const end = steps.at(-1) as { at: number; members: string };
      const last = sent.at(-1) as Sent;
      expect(sameTopology(last.topology, topology(0, end.members))).toBe(true);
      expect(last.at - end.at).toBeLessThanOrEqual(COOLDOWN_MS);
    });
  });

  it('is noticed if it drops the last change: a planted cooldown that forgets what comes while it lasts', () => {
    const forgetful: typeof topologyChanged = (state, told, now) => {
      const step = topologyChanged(state, told, now);
      return step.send === undefined ? { state: { ...step.state, pending: undefined } } : step;
    };
    const isRight = fc.property(changes, (steps) => {
      const last = play(steps, forgetful).at(-1);
      return last !== undefined && sameTopology(last.topology, topology(0, steps.at(-1)?.members ?? ''));
    });
    expect(fc.check(isRight).failed).toBe(true);
  });

  it('is never sent twice in a row with the same content', () => {
    property((sent) => {
      sent
        .slice(1)
        .forEach((one, place) => expect(sameTopology(one.topology, (sent[place] as Sent).topology)).toBe(false));
    });
  });

  it('is the newest at the time it is sent', () => {
    property((sent, steps) => {
      for (const { at, topology: told } of sent) {
        const newest = steps.filter((step) => step.at <= at).at(-1);
        expect(sameTopology(topology(0, newest?.members ?? ''), told)).toBe(true);
      }
    });
  });

  it('is sent again after a cooldown if it could not be written', () => {
    const first = topologyChanged(newBroadcasts(COOLDOWN_MS, undefined, 0), topology(1, 'a'), 5);
    const failed = sendingFailed(first.state, first.send as Topology, 6);
    expect(failed.send).toBeUndefined();
    expect(failed.wakeAt).toBe(5 + COOLDOWN_MS);
    expect(timeIsUp(failed.state, 5 + COOLDOWN_MS).send).toEqual(topology(1, 'a'));
  });

  it('waits a cooldown after it was taken over from another sender, whose last broadcast may just have been sent', () => {
    const state = newBroadcasts(COOLDOWN_MS, topology(1, 'a'), 500);
    expect(topologyChanged(state, topology(2, 'a'), 500)).toEqual({ state });
    expect(topologyChanged(state, topology(2, 'ab'), 500)).toMatchObject({ wakeAt: 500 + COOLDOWN_MS });
  });
});
