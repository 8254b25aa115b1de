/** What members do: join, own assets and hand them on, follow the others, lead, and broadcast the topology. */
import { topologyOf } from '../../core/index.ts';
import type { FollowedMembers } from '../../runtime/members/followed-members.ts';
import type { JoinOptions } from '../../runtime/members/joining.ts';
import type { Membership } from '../../runtime/members/membership.ts';
import type { Term } from '../../runtime/members/lead.ts';
import { type Story, User } from './user.ts';

const MEMBERS = ['north', 'east', 'south', 'West'];
const ASSETS = ['x', 'y', 'z'];

export class MemberWorker extends User {
  protected stories(): readonly Story[] {
    return [
      () => this.#join(),
      () => this.#join(),
      () => this.#join(),
      () => this.#joinDetached(),
      () => this.#follow(),
      () => this.#follow(),
      () => this.#lead(),
      () => this.#broadcast(),
      () => this.#listen(),
    ];
  }

  async #join(): Promise<void> {
    const id = this.random.pick(MEMBERS);
    this.doing = `joins as ${id}`;
    const outcome = await this.box.members.join(id, { by: this.name }, this.#terms());
    if (outcome.kind !== 'joined') return;
    const { membership } = outcome;
    try {
      for (let changes = this.random.whole(0, 4); changes > 0; changes--) {
        await this.pause(500);
        this.doing = `changes its assets as ${id}`;
        await this.#change(membership);
      }
      await this.pause(1000);
    } finally {
      this.doing = `leaves as ${id}`;
      // Some never leave; then the end of the session removes them.
      if (this.random.chance(0.5)) await membership.leave();
      else if (this.random.chance(0.8)) await membership[Symbol.asyncDispose]();
    }
  }

  /** As a server does for a program in another language. */
  async #joinDetached(): Promise<void> {
    const id = this.random.pick(MEMBERS);
    this.doing = `joins as ${id}, detached`;
    const { members } = this.box;
    const { keepAlive: _, ...terms } = this.#terms();
    const outcome = await members.joinDetached(id, { by: this.name }, { ...terms, ttlMs: 2000 });
    if (outcome.kind !== 'joined') return;
    const { incarnation, renewWithinMs } = outcome.member;
    for (let renewals = this.random.whole(1, 4); renewals > 0; renewals--) {
      await this.pause(renewWithinMs);
      this.doing = `renews ${id}`;
      this.note((await members.renew(id, incarnation)).kind);
      const assets = [this.random.pick(ASSETS)];
      const exclusive = this.random.chance(0.4);
      this.note((await members.changeAssets(id, incarnation, 'set', assets, { exclusive })).kind);
    }
    this.doing = `leaves as ${id}, detached`;
    // Some never leave: then the lease does it for them.
    if (this.random.chance(0.7)) this.note((await members.leave(id, incarnation)).kind);
  }

  #terms(): JoinOptions {
    if (this.random.chance(0.5)) return {};
    const exclusive = this.random.chance(0.4);
    const assets = [this.random.pick(ASSETS)];
    return { assets, exclusive, weight: this.random.whole(1, 3), sensitive: true, keepAlive: false };
  }

  async #change(membership: Membership): Promise<void> {
    const assets = [this.random.pick(ASSETS), this.random.pick(ASSETS)];
    const options = { exclusive: this.random.chance(0.4) };
    switch (this.random.whole(0, 3)) {
      case 0:
        return this.note((await membership.addAssets(assets, options)).kind);
      case 1:
        return this.note((await membership.setAssets(assets, options)).kind);
      case 2:
        return this.note((await membership.removeAssets(assets)).kind);
      default: {
        const between = { from: membership.id, to: this.random.pick(MEMBERS) };
        return this.note((await this.box.members.moveAssets([assets[0] as string], between)).kind);
      }
    }
  }

  async #follow(): Promise<void> {
    this.doing = 'follows the members';
    const members = await this.box.members.follow({ keepAlive: false });
    const seen = this.checker.members.follower(`${this.name} at ${this.world.now.toFixed(1)}`, members.view());
    const changes = members.onChange((change) => seen(change, topologyOf(change.view).coordinator));
    const handOvers = members.onHandOver(({ from, to }) => this.note(`hand-over from ${from} to ${to}`));
    const signal = this.soon(3000);
    for await (const { view } of members.changes({ signal })) this.#look(members, view.version);
    changes.unsubscribe();
    handOvers.unsubscribe();
    if (this.random.chance(0.5)) members.stop();
    else await members[Symbol.asyncDispose]();
  }

  #look(members: FollowedMembers, version: number): void {
    const { coordinator } = members.topology();
    const owners = members.ownersOf(this.random.pick(ASSETS));
    const placed = members.ownerOf(this.name);
    this.note(`view ${version}: ${coordinator}, ${owners.join()}, ${placed}, ${members.isCoordinator()}`);
    if (owners.length > 0 && members.assetsOf(owners[0] as string).length === 0) this.fail('an owner without assets');
  }

  async #lead(): Promise<void> {
    this.doing = 'wants to lead';
    const work = async ({ hold, signal, epoch }: Term): Promise<number> => {
      this.doing = `leads with ${epoch}`;
      while (!signal.aborted && this.random.chance(0.7)) await this.using(hold, 300);
      return epoch;
    };
    const options = { holder: this.name, reason: 'simulated', metadata: { by: this.name } };
    const signal = this.soon(6000);
    await this.box.lead('simulated', work, { ...options, signal, onWaiting: () => this.note('waits to lead') });
  }

  async #broadcast(): Promise<void> {
    this.doing = 'broadcasts the topology';
    const broadcast = this.box.members.broadcastTopology({
      cooldownMs: this.random.pick([50, 500]),
      onFailed: (error) => this.note(`the topology was not sent: ${String(error)}`),
    });
    await this.pause(3000);
    this.doing = `stops the broadcast, sending: ${broadcast.isSending}`;
    if (this.random.chance(0.5)) await broadcast.stop();
    else await broadcast[Symbol.asyncDispose]();
  }

  async #listen(): Promise<void> {
    this.doing = 'hears of the topology';
    const heard = this.checker.members.listener(this.name);
    const listening = await this.box.members.onTopology(heard, { keepAlive: false });
    await this.pause(3000);
    listening.unsubscribe();
    const members = await this.box.members.list();
    const isAlive = await this.box.members.isAlive(this.random.pick(MEMBERS));
    this.note(`${members.length} members, ${isAlive}, topology ${(await this.box.members.topology())?.version}`);
  }
}
