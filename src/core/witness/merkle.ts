/**
 * Merkle trees with the shape of RFC 6962, so that a few hashes prove that one leaf is among thousands. The hash of a node is
 * the SHA-256 of the byte 1 and the hashes of its two children in hex. A leaf never begins with that byte, so a node cannot pass
 * as a leaf.
 *
 *            root
 *           /    \
 *         a b     c        three leaves: the last has no partner, and goes up as it is
 */
import type { Digest } from './entry.ts';

/** The root of a tree without leaves is the hash of nothing. */
export function merkleRoot(leaves: readonly string[], digest: Digest): string {
  if (leaves.length === 0) return digest('');
  let level = leaves;
  while (level.length > 1) level = levelAbove(level, digest);
  return level[0] as string;
}

/** The path from a leaf to the root: sibling hashes from the bottom up. */
export function merklePath(leaves: readonly string[], index: number, digest: Digest): readonly string[] {
  const path: string[] = [];
  let at = index;
  for (let level = leaves; level.length > 1; level = levelAbove(level, digest)) {
    const sibling = level[at ^ 1];
    if (sibling !== undefined) path.push(sibling);
    at >>= 1;
  }
  return path;
}

/** The root at the end of a path from leaf `index` of `size`; undefined if the path does not fit such a tree. */
export function rootByPath(
  leaf: string,
  index: number,
  size: number,
  path: readonly string[],
  digest: Digest,
): string | undefined {
  if (index < 0 || index >= size) return undefined;
  let hash = leaf;
  let used = 0;
  for (let at = index, last = size - 1; last > 0; at >>= 1, last >>= 1) {
    // The last node of an odd number has no partner on this level.
    if (at === last && at % 2 === 0) continue;
    const sibling = path[used++];
    if (sibling === undefined) return undefined;
    hash = at % 2 === 0 ? nodeHash(hash, sibling, digest) : nodeHash(sibling, hash, digest);
  }
  return used === path.length ? hash : undefined;
}

function levelAbove(level: readonly string[], digest: Digest): readonly string[] {
  const above: string[] = [];
  for (let i = 0; i < level.length; i += 2) {
    const left = level[i] as string;
    const right = level[i + 1];
    above.push(right === undefined ? left : nodeHash(left, right, digest));
  }
  return above;
}

function nodeHash(left: string, right: string, digest: Digest): string {
  return digest(`\u0001${left}${right}`);
}
