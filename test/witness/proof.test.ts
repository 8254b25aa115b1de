import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type InclusionProof, proofOf, proofProblem } from '../../src/core/index.ts';
import { merklePath, merkleRoot, rootByPath } from '../../src/core/witness/index.ts';
import { sha256 } from '../../src/host/index.ts';
import { type History, record } from './history.ts';

function proofIn({ chains, checkpoints }: History, resource: string, seq: number): InclusionProof {
  const chain = chains.get(resource) ?? [];
  const entry = chain[seq - 1];
  if (entry === undefined) throw new Error(`${resource} has no entry ${seq}`);
  const proving = proofOf(entry, { first: 1, hashes: chain.map(({ hash }) => hash) }, checkpoints, sha256);
  if ('problem' in proving) throw new Error(proving.problem);
  return proving.proof;
}

describe('a Merkle path', () => {
  it('leads from each leaf to the root, and from nothing else', () => {
    for (let size = 1; size <= 33; size++) {
      const leaves = Array.from({ length: size }, (_, i) => sha256(`leaf ${i}`));
      const root = merkleRoot(leaves, sha256);
      leaves.forEach((leaf, i) => {
        const path = merklePath(leaves, i, sha256);
        expect(path.length).toBeLessThanOrEqual(Math.ceil(Math.log2(size)));
        expect(rootByPath(leaf, i, size, path, sha256)).toBe(root);
        expect(rootByPath(sha256('other'), i, size, path, sha256)).not.toBe(root);
        expect(rootByPath(leaf, i, size, [...path, leaf], sha256)).toBeUndefined();
        if (path.length > 0) expect(rootByPath(leaf, i, size, path.slice(1), sha256)).not.toBe(root);
        expect(rootByPath(leaf, size, size, path, sha256)).toBeUndefined();
      });
    }
  });

  it('is that of RFC 6962: the left half is the largest power of two', () => {
    const split = (leaves: readonly string[]): string => {
      if (leaves.length <= 1) return leaves[0] ?? sha256('');
      const half = 2 ** (Math.ceil(Math.log2(leaves.length)) - 1);
      return sha256(`\u0001${split(leaves.slice(0, half))}${split(leaves.slice(half))}`);
    };
    for (let size = 0; size <= 40; size++) {
      const leaves = Array.from({ length: size }, (_, i) => sha256(`${i}`));
      expect(merkleRoot(leaves, sha256)).toBe(split(leaves));
    }
  });
});

describe('a proof', () => {
  const history = record({ entries: 320, resources: 20 });

  it('shows each entry of the record without the rest of it, and stays small', () => {
    for (const [resource, chain] of history.chains) {
      for (const { seq } of chain) {
        const proof = proofIn(history, resource, seq);
        const read: unknown = JSON.parse(JSON.stringify(proof));
        expect(proofProblem(read, sha256, { anchors: history.checkpoints })).toBeUndefined();
        expect(proof.entryPath.length + proof.headPath.length).toBeLessThanOrEqual(10);
      }
    }
  });

  it('does not show anything else: a changed field or hash anywhere is found', () => {
    const proof = proofIn(history, 'lock/7', 5);
    const text = JSON.stringify(proof);
    fc.assert(
      fc.property(fc.nat(text.length - 1), (at) => {
        const flipped = text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ 1) + text.slice(at + 1);
        let value: unknown;
        try {
          value = JSON.parse(flipped);
        } catch {
          return;
        }
        expect(proofProblem(value, sha256)).toBeDefined();
      }),
      { numRuns: 1000 },
    );
    const other = proofIn(history, 'lock/7', 6);
    expect(proofProblem({ ...proof, entry: other.entry }, sha256)).toContain('does not lead to the tree');
    expect(proofProblem({ ...proof, head: { ...proof.head, resource: 'lock/8' } }, sha256)).toContain('not of lock/7');
  });

  it('needs a checkpoint that is vouched for', () => {
    const proof = proofIn(history, 'lock/7', 5);
    const forged = proofIn(record({ entries: 320, resources: 20, actor: 'mallory' }), 'lock/7', 5);
    const anchors = history.checkpoints;
    expect(proofProblem(forged, sha256)).toBeUndefined();
    expect(proofProblem(forged, sha256, { anchors })).toContain('was not anchored');
    const verifySignature = (): string => 'another key signed it';
    expect(proofProblem(proof, sha256, { verifySignature })).toContain('it is not signed');
  });

  it('exists only for what a checkpoint covers', () => {
    const { chains, checkpoints } = record({ entries: 60, resources: 6, every: 50 });
    const late = [...chains.values()].flat().find(({ revision }) => revision === 60);
    if (late === undefined) throw new Error('no entry 60');
    const hashes = (chains.get(late.resource) ?? []).map(({ hash }) => hash);
    const problem = `no checkpoint with its heads covers entry ${late.seq} of ${late.resource}`;
    expect(proofOf(late, { first: 1, hashes }, checkpoints.slice(0, 1), sha256)).toEqual({ problem });
  });
});
