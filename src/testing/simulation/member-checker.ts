/**
 * Checks that every follower of the members saw the views that the store had, in their order. It watches the store itself, as an
 * observer that no fault affects, and compares at the end, when both sides are complete.
 */
import type { Member, Topology, View, ViewChange } from '../../core/index.ts';
import { idOf, memberIn } from '../../runtime/members/records.ts';
import type { Changes } from '../../store/index.ts';

interface Sight {
  readonly who: string;
  readonly before: number;
  readonly change: ViewChange<Member>;
  readonly coordinator: string | null;
}

export class MemberChecker {
  readonly #fail: (what: string) => void;
  readonly #members = new Map<string, Member>();
  /** The members at each revision that changed one. */
  readonly #truth: { readonly version: number; readonly told: string }[] = [{ version: 0, told: '' }];
  readonly #sights: Sight[] = [];

  constructor(fail: (what: string) => void) {
    this.#fail = fail;
  }

  stored({ changes, revision }: Changes): void {
    for (const change of changes) {
      if (change.kind === 'delete') this.#members.delete(idOf(change.key));
      else {
        const member = memberIn(change.pair);
        this.#members.set(member.id, member);
        if (change.pair.lease === null) this.#fail(`member/${member.id} and its assets would outlive their process`);
      }
    }
    const members = [...this.#members.values()];
    for (const { assets } of members)
      for (const { id, isExclusive } of assets) if (isExclusive) this.#once(id, members);
    this.#truth.push({ version: revision, told: toldOf(members) });
  }

  #once(asset: string, members: readonly Member[]): void {
    const owners = members.filter(({ assets }) => assets.some(({ id }) => id === asset)).map(({ id }) => id);
    if (owners.length > 1) this.#fail(`the exclusive asset ${asset} is owned by ${owners.join(' and ')}`);
  }

  /** Registers a follower that begins with this view; returns the function that takes its changes. */
  follower(who: string, view: View<Member>): (change: ViewChange<Member>, coordinator: string | null) => void {
    let before = view.version;
    const first = { view, joined: [], left: [], changed: [], isResync: true };
    this.#sights.push({ who, before: 0, change: first, coordinator: lowestOf(view.members) });
    return (change, coordinator) => {
      this.#sights.push({ who, before, change, coordinator });
      before = change.view.version;
    };
  }

  /** Registers a follower of the topology, which must never get an older one after a newer one. */
  listener(who: string): (topology: Topology) => void {
    let last = 0;
    return ({ version }) => {
      if (version < last) this.#fail(`${who} heard of topology ${version} after ${last}`);
      last = version;
    };
  }

  atTheEnd(): void {
    for (const { who, before, change, coordinator } of this.#sights) {
      const { version, members } = change.view;
      const told = toldOf(members);
      const there = this.#truth.findLast((truth) => truth.version <= version);
      if (there?.told !== told) this.#fail(`${who} saw «${told}» as view ${version}, and it was «${there?.told}»`);
      const skipped = this.#truth.filter((truth) => truth.version > before && truth.version < version);
      if (skipped.length > 0 && !change.isResync) this.#fail(`${who} skipped view ${skipped[0]?.version} silently`);
      if (version < before) this.#fail(`${who} saw view ${version} after ${before}`);
      if (coordinator !== lowestOf(members)) this.#fail(`${who}: ${coordinator} coordinates «${told}»`);
    }
  }
}

function toldOf(members: readonly Member[]): string {
  const lines = members.map(
    ({ id, incarnation, assets }) => `${id}#${incarnation}[${assets.map((one) => one.id).join()}]`,
  );
  return lines.sort().join(' ');
}

function lowestOf(members: readonly Member[]): string | null {
  return members.map(({ id }) => id).sort()[0] ?? null;
}
