/** Backups of an etcd, and what people restore it with. It is down before and after, and is to be started by the test. */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Member, onFreePorts, peerUrl, type Ports } from './member.ts';

const run = promisify(execFile);
const env = { ...process.env, ETCDCTL_API: '3' };

export async function startAlone(): Promise<Member> {
  return onFreePorts(1, async (ports) => {
    const { client, peer } = ports[0] as Ports;
    const member = await Member.prepare('default', { client, peer }, [
      ...['--initial-cluster', `default=${peerUrl(peer)}`, '--heartbeat-interval', '20', '--election-timeout', '200'],
    ]);
    try {
      await member.start();
    } catch (error) {
      await member.stop();
      throw error;
    }
    return member;
  });
}

export class Backup {
  readonly #member: Member;
  readonly #directory: string;

  private constructor(member: Member, directory: string) {
    this.#member = member;
    this.#directory = directory;
  }

  /** Of an etcd that runs: by `etcdctl snapshot save`, and by a copy of its files while it is stopped for a moment. */
  static async take(member: Member): Promise<Backup> {
    const directory = await mkdtemp(join(tmpdir(), 'signalbox-backup-'));
    const backup = new Backup(member, directory);
    await run('etcdctl', [`--endpoints=127.0.0.1:${member.port}`, 'snapshot', 'save', backup.#snapshot], { env });
    await member.kill();
    await cp(member.directory, backup.#copy, { recursive: true });
    await member.start();
    return backup;
  }

  async restoreSnapshot(...flags: readonly string[]): Promise<void> {
    const { name, peer } = this.#member;
    const restored = join(this.#directory, 'restored');
    await run(
      'etcdctl',
      [
        ...['snapshot', 'restore', this.#snapshot, '--name', name, '--data-dir', restored],
        ...['--initial-cluster', `${name}=${peer}`, '--initial-advertise-peer-urls', peer],
        ...flags,
      ],
      { env },
    );
    await this.#putInPlace(restored);
  }

  async restoreFiles(): Promise<void> {
    await this.#putInPlace(this.#copy);
  }

  async remove(): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #putInPlace(restored: string): Promise<void> {
    await rm(this.#member.directory, { recursive: true, force: true });
    await rename(restored, this.#member.directory);
  }

  get #snapshot(): string {
    return join(this.#directory, 'snapshot.db');
  }

  get #copy(): string {
    return join(this.#directory, 'copy');
  }
}
