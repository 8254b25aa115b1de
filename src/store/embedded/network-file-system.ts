/**
 * SQLite's locks and the memory that its processes share need one kernel that sees all of them. On a file system that
 * several machines mount, each would see only its own.
 */
import { readFileSync, statfsSync } from 'node:fs';

/** As the kernel numbers them. */
const NUMBERED: ReadonlyMap<number, string> = new Map([
  [0x6969, 'nfs'],
  [0x517b, 'smb'],
  [0xff534d42, 'cifs'],
  [0xfe534d42, 'smb2'],
  [0x5346414f, 'afs'],
  [0x01021997, '9p'],
  [0x00c36400, 'ceph'],
  [0x0bd00bd0, 'lustre'],
  [0x47504653, 'gpfs'],
  [0x7461636f, 'ocfs2'],
]);
const FUSE = 0x65735546;
/** Of the file systems that live in a program, some are local disks. */
const FUSE_OVER_NETWORK =
  /^(virtiofs|fuse\.(sshfs|s3fs|gcsfuse|rclone|glusterfs|ceph-fuse|juicefs|davfs2?|smbnetfs|curlftpfs))$/;

/** What kind of network file system it is on; undefined for a local one, or where that cannot be told. */
export function networkFileSystem(
  directory: string,
  typeOf: (directory: string) => number = (path) => statfsSync(path).type,
  mounts: () => string = () => readFileSync('/proc/self/mountinfo', 'utf8'),
): string | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    // Some come with their sign bit set.
    const type = typeOf(directory) >>> 0;
    if (type !== FUSE) return NUMBERED.get(type);
    const kind = mountedAs(directory, mounts());
    return kind !== undefined && FUSE_OVER_NETWORK.test(kind) ? kind : undefined;
  } catch {
    return undefined;
  }
}

/** The kind of the innermost mount that the directory is in. */
function mountedAs(directory: string, mounts: string): string | undefined {
  let best = { path: '', kind: undefined as string | undefined };
  for (const line of mounts.split('\n')) {
    const [before = '', after = ''] = line.split(' - ');
    const path = before.split(' ')[4]?.replaceAll('\\040', ' ');
    if (path === undefined || path.length < best.path.length) continue;
    if (directory === path || directory.startsWith(path.endsWith('/') ? path : `${path}/`)) {
      best = { path, kind: after.split(' ')[0] };
    }
  }
  return best.kind;
}
