/**
 * The topology: who is there, with which assets, and who coordinates; and when it is broadcast.
 *
 *     quiet ── change: send at once ──▶ cooling ── change: keep it ──▶ cooling, pending
 *       ▲                                  │                               │
 *       └────────── time is up ────────────┘          time is up: send ────┘ (and cool again)
 *
 * At most one broadcast per cooldown, the last change is always sent, and a topology that equals the last one sent is not sent
 * again. Pure: the time is a value, and the sender reports what became of each broadcast.
 */
import type { Json } from '../machine.ts';
import { coordinatorOf, type Member, type View } from './view.ts';

/** A member, as the topology names it. A type and not an interface, so that the compiler accepts it as JSON. */
export type TopologyMember = {
  /** Its id. */
  readonly id: string;
  /** Tells two members with one id apart. */
  readonly incarnation: number;
  /** What it said about itself. */
  readonly metadata: Json | undefined;
  /** Its share of the keys that `ownerOf` places. */
  readonly weight: number;
  /** The ids of what it owns. */
  readonly assets: readonly string[];
};

/** Who is there, with which assets, and who coordinates. */
export type Topology = {
  /** The version of the view. */
  readonly version: number;
  /** By id, in the order of code units. */
  readonly members: readonly TopologyMember[];
  /** The first member; null without members. */
  readonly coordinator: string | null;
};

export function topologyOf(view: View<Member>): Topology {
  return {
    version: view.version,
    members: view.members.map(({ id, incarnation, metadata, weight, assets }) => ({
      id,
      incarnation,
      metadata,
      weight,
      assets: assets.map((asset) => asset.id),
    })),
    coordinator: coordinatorOf(view),
  };
}

/** Equal but for the version: a member that registered an asset and removed it again has changed nothing. */
export function sameTopology(one: Topology, other: Topology): boolean {
  return one.coordinator === other.coordinator && JSON.stringify(one.members) === JSON.stringify(other.members);
}

export interface Broadcasts {
  readonly cooldownMs: number;
  /** The last one that was sent, or is being sent. */
  readonly sent: Topology | undefined;
  /** When it was sent. */
  readonly sentAt: number | undefined;
  /** The newest one, if it is not the one that was sent. */
  readonly pending: Topology | undefined;
}

export interface BroadcastStep {
  readonly state: Broadcasts;
  /** Send this now. */
  readonly send?: Topology;
  /** Call `timeIsUp` at this time. */
  readonly wakeAt?: number;
}

/**
 * `sent`: the last broadcast of an earlier sender. Its time is unknown, because no two clocks are compared, so it counts as
 * sent just now.
 */
export function newBroadcasts(cooldownMs: number, sent: Topology | undefined, now: number): Broadcasts {
  return { cooldownMs, sent, sentAt: sent === undefined ? undefined : now, pending: undefined };
}

/** The topology is this one now. */
export function topologyChanged(state: Broadcasts, topology: Topology, now: number): BroadcastStep {
  const isSent = state.sent !== undefined && sameTopology(state.sent, topology);
  return next({ ...state, pending: isSent ? undefined : topology }, now);
}

export function timeIsUp(state: Broadcasts, now: number): BroadcastStep {
  return next(state, now);
}

/** The broadcast could not be written: it is due again after a cooldown, unless something newer is. */
export function sendingFailed(state: Broadcasts, topology: Topology, now: number): BroadcastStep {
  return next({ ...state, sent: undefined, pending: state.pending ?? topology }, now);
}

function next(state: Broadcasts, now: number): BroadcastStep {
  const { pending, sentAt, cooldownMs } = state;
  if (pending === undefined) return { state };
  const dueAt = sentAt === undefined ? now : sentAt + cooldownMs;
  if (now < dueAt) return { state, wakeAt: dueAt };
  return { state: { ...state, sent: pending, sentAt: now, pending: undefined }, send: pending };
}
