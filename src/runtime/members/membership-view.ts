/** The view as an interface, for users that know their members from elsewhere: Kubernetes, gossip, a test. */
import type { View, ViewChange } from '../../core/index.ts';
import type { Subscription } from '../subscription.ts';

/**
 * `open(url, { membership })` runs the coordinator, the registry, `ownerOf` and the topology on it. What signalbox promises of
 * its own view, this one has to keep itself: that all processes see the same views in the same order, that an id is there once,
 * and how soon a dead member leaves. The assets of a member are still in the store: they are listed only while the view has the
 * member, but no longer leave in one step with it.
 */
export interface MembershipView {
  /** The members as they are known now. */
  view(): View;
  /** Calls `listener` after every change, when `view` has it already. */
  onChange(listener: (change: ViewChange) => void): Subscription;
}
