/** Checks an etcd server. */
import { isEtcdUrl, openEtcdUrl, type ServerStatus } from '../../store/index.ts';
import { fail, type Finding, ok, warn } from './finding.ts';

/** A part of etcd's default quota. At the quota itself etcd refuses writes. */
const MUCH_BYTES = 1.5 * 1024 ** 3;
const OLDEST = [3, 4] as const;

export async function serverStatus(url: string): Promise<ServerStatus | undefined> {
  if (!isEtcdUrl(url)) return undefined;
  const store = await openEtcdUrl(url);
  try {
    return await store.status();
  } finally {
    await store.close();
  }
}

export function etcdServer({ version, databaseBytes, hasLeader, errors }: ServerStatus): Finding {
  const size = `${(databaseBytes / 1024 ** 2).toFixed(1)} MiB`;
  const message = `etcd ${version}, its database is ${size}`;
  if (!hasLeader)
    return fail('etcd', `${message}; it has no leader`, 'start its members: more than half of the cluster must run');
  if (errors.length > 0) {
    const advice = 'fix what etcd reports; after NOSPACE: compact, defrag, then etcdctl alarm disarm';
    return fail('etcd', `${message}; ${errors.join(', ')}`, advice);
  }
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])) {
    return warn('etcd', message, `update etcd: signalbox needs ${OLDEST.join('.')} or later`);
  }
  if (databaseBytes <= MUCH_BYTES) return ok('etcd', message);
  const advice = 'let etcd compact by itself (--auto-compaction-retention), and defrag; see its --quota-backend-bytes';
  return warn('etcd', message, advice);
}

export function etcdAdvice(code: string): string | undefined {
  if (code === 'forbidden') {
    return 'name a user in the URL (etcd://USER@HOST?password-file=FILE), or a certificate; its role must be able to read and write the prefix';
  }
  if (code !== 'unavailable') return undefined;
  return 'check that etcd can be reached from here (etcdctl endpoint health), or name another store with --store or SIGNALBOX_URL';
}
