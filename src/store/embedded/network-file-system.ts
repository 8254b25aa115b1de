/**
 * Finds out whether a file is on a network file system. SQLite's locks and shared memory need one kernel that sees them
 * all; on a file system that several machines mount, each kernel would see only its own.
 */
import { readFileSync, statfsSync } from 'node:fs';

/** File systems by the kernel's number, among them disks that several machines share (gfs2, ocfs2). */
const NUMBERED: ReadonlyMap<number, string> = new Map([
  [0x6969, 'nfs'],
  [0x517b, 'smb'],
  [0xff534d42, 'cifs'],
  [0xfe534d42, 'smb2'],
  [0x5346414f, 'afs'],
  [0x6b414653, 'afs'],
  [0x73757245, 'coda'],
  [0x564c, 'ncp'],
  [0x01021997, '9p'],
  [0x00c36400, 'ceph'],
  [0x0bd00bd0, 'lustre'],
  [0x47504653, 'gpfs'],
  [0x7461636f, 'ocfs2'],
  [0x01161970, 'gfs2'],
  [0x20030528, 'orangefs'],
  [0x19830326, 'beegfs'],
  [0x786f4256, 'vboxsf'],
  [0xbacbacbc, 'vmhgfs'],
  [0x7c7c6673, 'prl_fs'],
  [0xaad7aaea, 'panfs'],
  [0x013111a8, 'ibrix'],
]);
/** Disks and memory of this machine: ext, xfs, btrfs, f2fs, tmpfs, and layers of them (overlay). The list of mounts says no more. */
const LOCAL: ReadonlySet<number> = new Set([0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x01021994, 0x794c7630]);
const FUSE = 0x65735546;
/** The local ones among the file systems that run as a program (FUSE): a few disks, and layers over them. */
const FUSE_LOCAL =
  /^(fuseblk|fuse\.(ntfs-3g|lowntfs-3g|exfat|fuse-exfat|ext[234]|fuse2fs|fuse-overlayfs|overlayfs|unionfs(-fuse)?|bindfs|encfs|gocryptfs|cryfs|securefs|lxcfs|zfs(-fuse)?|apfs|squashfuse|archivemount|fuse-zip|dwarfs))$/;
/** Names under which network file systems are mounted, where the kernel's number says nothing. */
const NAMED =
  /^(virtiofs|nfs4?|cifs|smb3?|smbfs|ncpfs|9p|afs|coda|ceph|lustre|gpfs|gfs2?|ocfs2|beegfs|orangefs|pvfs2|vboxsf|vmhgfs|prl_fs|panfs|acfs|davfs|glusterfs|fhgfs|moosefs)$/;

/** The kind of network file system that the file is on; undefined for a local one, or if that is unknown. */
export function networkFileSystem(
  directory: string,
  typeOf: (directory: string) => number = (path) => statfsSync(path).type,
  mounts: () => string = () => readFileSync('/proc/self/mountinfo', 'utf8'),
): string | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    // Some numbers come with their sign bit set.
    const type = typeOf(directory) >>> 0;
    const numbered = NUMBERED.get(type);
    if (numbered !== undefined || LOCAL.has(type)) return numbered;
    const kind = mountedAs(directory, mounts());
    if (kind === undefined) return undefined;
    if (NAMED.test(kind)) return kind;
    // An unknown one may well be a network file system (sshfs, s3fs, rclone …): each year brings new ones.
    return type === FUSE && !FUSE_LOCAL.test(kind) ? kind : undefined;
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
