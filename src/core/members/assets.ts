/**
 * The registry: which member owns which assets. Assets are part of the member's own record, so they come and go with it in one
 * revision. Every function is a decision on the members at one revision; the write compares that they are still so.
 */
import type { Asset, Member } from './view.ts';

export type AssetChange =
  | { readonly kind: 'set'; readonly assets: readonly string[]; readonly isExclusive: boolean }
  | { readonly kind: 'add'; readonly assets: readonly string[]; readonly isExclusive: boolean }
  | { readonly kind: 'remove'; readonly assets: readonly string[] };

/** An asset of a record that is about to be written: without `since`, it is registered by that very write. */
export type RecordedAsset = Omit<Asset, 'since'> & { readonly since?: number };

export type AssetDecision =
  /** `adds`: the new assets, which have to be compared with those of other members. */
  | { readonly kind: 'write'; readonly assets: readonly RecordedAsset[]; readonly adds: readonly RecordedAsset[] }
  /** The assets are as asked for already. */
  | { readonly kind: 'unchanged' }
  | AssetTaken;

/** Another member has an asset that was asked for. */
export type AssetTaken = {
  /** Tells the outcomes apart. */
  readonly kind: 'asset-taken';
  /** The id of the asset. */
  readonly asset: string;
  /** The member that has it. */
  readonly owner: string;
};

export type MoveDecision =
  | {
      readonly kind: 'write';
      readonly from: readonly RecordedAsset[];
      readonly to: readonly RecordedAsset[];
    }
  | { readonly kind: 'unchanged' }
  /** One of the two members is not there. */
  | { readonly kind: 'no-member'; readonly member: string }
  | { readonly kind: 'not-owner'; readonly asset: string; readonly owners: readonly string[] };

/** The members that have registered the asset, in the order in which they did. */
export function ownersOf(asset: string, members: readonly Member[]): readonly string[] {
  return members
    .flatMap(({ id, assets }) => assets.filter((own) => own.id === asset).map(({ since }) => ({ id, since })))
    .sort((one, other) => one.since - other.since)
    .map(({ id }) => id);
}

/** Decides what a member's assets become. `others`: all other members. */
export function decideAssets(own: readonly Asset[], change: AssetChange, others: readonly Member[]): AssetDecision {
  const named = new Set(change.assets);
  if (change.kind === 'remove') {
    const assets = own.filter(({ id }) => !named.has(id));
    return assets.length === own.length ? { kind: 'unchanged' } : { kind: 'write', assets, adds: [] };
  }
  const { isExclusive } = change;
  const kept = change.kind === 'set' ? own.filter(({ id }) => named.has(id)) : own;
  // An asset that changes between shared and exclusive stays where it is in the order of its owners.
  const same = kept.map((asset) => (named.has(asset.id) ? { ...asset, isExclusive } : asset));
  const had = new Map(own.map((asset) => [asset.id, asset]));
  const fresh = [...named].filter((id) => !had.has(id)).map((id): RecordedAsset => ({ id, isExclusive }));
  const adds = [...fresh, ...same.filter(({ id }) => had.get(id)?.isExclusive !== isExclusive && named.has(id))];
  const taken = firstTaken(adds, others);
  if (taken !== undefined) return taken;
  if (adds.length === 0 && kept.length === own.length) return { kind: 'unchanged' };
  return { kind: 'write', assets: [...same, ...fresh], adds };
}

/** No other member may have an exclusive asset, and no asset may be exclusive to another member. */
function firstTaken(adds: readonly RecordedAsset[], others: readonly Member[]): AssetTaken | undefined {
  if (adds.length === 0) return undefined;
  const wanted = new Map(adds.map((asset) => [asset.id, asset]));
  for (const { id: owner, assets } of others) {
    for (const { id, isExclusive } of assets) {
      const wish = wanted.get(id);
      if (wish !== undefined && (isExclusive || wish.isExclusive)) return { kind: 'asset-taken', asset: id, owner };
    }
  }
  return undefined;
}

/** Which memberships are meant; without an incarnation, the member that has the id now. */
export interface MoveIncarnations {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** Moves assets from one member to another. If they are there already, nothing changes, so a repeat is harmless. */
export function decideMove(
  assets: readonly string[],
  from: string,
  to: string,
  members: readonly Member[],
  incarnations: MoveIncarnations = {},
): MoveDecision {
  const found = (id: string, incarnation: number | undefined): Member | undefined =>
    members.find((member) => member.id === id && (incarnation ?? member.incarnation) === member.incarnation);
  const [source, target] = [found(from, incarnations.from), found(to, incarnations.to)];
  if (target === undefined) return { kind: 'no-member', member: to };
  const named = new Set(assets);
  const moving = (source?.assets ?? []).filter(({ id }) => named.has(id));
  const there = new Set(target.assets.map(({ id }) => id));
  const missing = [...named].find((id) => !there.has(id) && !moving.some((asset) => asset.id === id));
  if (missing !== undefined) {
    if (source === undefined) return { kind: 'no-member', member: from };
    return { kind: 'not-owner', asset: missing, owners: ownersOf(missing, members) };
  }
  if (moving.length === 0 || source === undefined || from === to) return { kind: 'unchanged' };
  return {
    kind: 'write',
    from: source.assets.filter(({ id }) => !named.has(id)),
    to: [
      ...target.assets,
      ...moving.filter(({ id }) => !there.has(id)).map(({ id, isExclusive }) => ({ id, isExclusive })),
    ],
  };
}
