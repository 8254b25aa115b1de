/** A cluster of three etcds of the test's own, whose members can be killed, stopped and started again. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Member, onFreePorts, peerUrl, type Ports } from './member.ts';

const SIZE = 3;
const PATIENCE_MS = 120_000;
/** A member that stands still does not answer at all. */
const ANSWER_MS = 1000;
/** Long enough for a machine that is busy with other tests; a lost leader is replaced within about twice of it. */
const ELECTION_MS = 1000;

interface Status {
  readonly header: { readonly member_id: string };
  /** `0`, or nothing at all, while there is none. */
  readonly leader?: string;
  readonly raftTerm: string;
}

export class EtcdCluster {
  readonly members: readonly Member[];

  private constructor(members: readonly Member[]) {
    this.members = members;
  }

  static start(flags: readonly string[] = []): Promise<EtcdCluster> {
    return onFreePorts(SIZE, async (ports) => {
      const cluster = new EtcdCluster(await prepare(ports, flags));
      try {
        // None of them answers before most of them are there.
        await Promise.all(cluster.members.map((member) => member.start()));
        await cluster.leader();
      } catch (error) {
        await cluster.stop();
        throw error;
      }
      return cluster;
    });
  }

  /** `host:port,host:port,host:port`, as it stands in a store's URL. */
  get endpoints(): string {
    return this.members.map(({ port }) => `127.0.0.1:${port}`).join(',');
  }

  /** The one that most of those who answer take for their leader; waits until there is one, other than `notThis`. */
  async leader(notThis?: Member): Promise<Member> {
    const deadline = performance.now() + PATIENCE_MS;
    while (performance.now() < deadline) {
      const leader = await this.#leaderNow();
      if (leader !== undefined && leader !== notThis) return leader;
      await sleep(20);
    }
    throw new Error(`there was no leader within ${PATIENCE_MS} ms`);
  }

  async follower(): Promise<Member> {
    const leader = await this.leader();
    return this.members.find((member) => member !== leader && member.isRunning) as Member;
  }

  /** The leader is another one afterwards, and no process has died: as in a rolling upgrade. */
  async moveLeadership(): Promise<Member> {
    const [from, to] = [await this.leader(), await this.follower()];
    const { header } = (await to.ask('maintenance/status')) as Status;
    await from.ask('maintenance/transfer-leadership', { targetID: header.member_id });
    return this.leader(from);
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop()));
  }

  async #leaderNow(): Promise<Member | undefined> {
    const answers = await Promise.all(
      this.members.map(async (member) => {
        const status = await (member.ask('maintenance/status', {}, ANSWER_MS) as Promise<Status>).catch(
          () => undefined,
        );
        return status === undefined ? undefined : { member, status };
      }),
    );
    const heard = answers.filter((answer) => answer !== undefined);
    const agreed = heard.find(
      ({ status: { header } }) => heard.filter(({ status }) => status.leader === header.member_id).length > SIZE / 2,
    );
    return agreed?.member;
  }
}

function prepare(ports: readonly Ports[], flags: readonly string[]): Promise<Member[]> {
  const name = (i: number): string => `member-${i + 1}`;
  const all = ports.map(({ peer }, i) => `${name(i)}=${peerUrl(peer)}`).join(',');
  return Promise.all(
    ports.map((each, i) =>
      Member.prepare(name(i), each, [
        ...['--initial-cluster', all, '--heartbeat-interval', String(ELECTION_MS / 10)],
        ...['--election-timeout', String(ELECTION_MS)],
        ...flags,
      ]),
    ),
  );
}
