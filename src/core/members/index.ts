/** Membership: the view, its coordinator, what members own, and the broadcast of all of it. */
export { ownerOf } from './placement.ts';
export {
  type AssetChange,
  type AssetDecision,
  type AssetTaken,
  decideAssets,
  decideMove,
  type MoveDecision,
  ownersOf,
  type RecordedAsset,
} from './assets.ts';
export {
  type Broadcasts,
  type BroadcastStep,
  newBroadcasts,
  sameTopology,
  sendingFailed,
  timeIsUp,
  type Topology,
  topologyChanged,
  type TopologyMember,
  topologyOf,
} from './topology.ts';
export {
  type Asset,
  byId,
  changeBetween,
  coordinatorOf,
  isNothing,
  type Member,
  type MemberUpdate,
  NO_VIEW,
  updated,
  type View,
  type ViewChange,
  type ViewMember,
  viewOf,
} from './view.ts';
