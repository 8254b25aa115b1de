import { verify as verifyBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  type Checkpoint,
  type Finding,
  headerLine,
  nextCheckpoint,
  type Verification,
  Verifier,
  type VerifierOptions,
  type VerifySignature,
} from '../../src/core/index.ts';
import { ChainCheck, type Link, NO_ENTRY } from '../../src/core/witness/index.ts';
import { sha256 } from '../../src/host/index.ts';
import { exported, record, signer, trimmed } from './history.ts';
import { type Mutation, mutationsOf } from './mutations.ts';

type Verify = (lines: readonly string[], options?: Partial<VerifierOptions>) => Verification;

const verify: Verify = (lines, options = {}) => readBy(new Verifier({ digest: sha256, ...options }), lines);

function readBy(verifier: Verifier, lines: readonly string[]): Verification {
  for (const line of lines) {
    verifier.line(line);
    if (verifier.isDecided) break;
  }
  return verifier.finish();
}

/** What a verifier does not find, or calls by a wrong name. */
function missedBy(verify: Verify, lines: readonly string[]): string[] {
  const missed: string[] = [];
  for (const mutation of mutationsOf(lines)) {
    const { finding } = verify(mutation.lines);
    if (!isNamed(mutation, finding)) missed.push(`${mutation.what}: ${JSON.stringify(finding)}, not ${mutation.kinds}`);
  }
  return missed;
}

function isNamed({ kinds, at, line }: Mutation, finding: Finding | undefined): boolean {
  if (finding === undefined || !kinds.includes(finding.kind)) return false;
  if (line !== undefined && finding.line !== line) return false;
  return (
    at === undefined || [at].flat().some(({ resource, seq }) => finding.resource === resource && finding.seq === seq)
  );
}

const history = record({ entries: 320, resources: 20 });
const lines = exported(history);

describe('the verifier', () => {
  it('finds nothing wrong with a record as it was written', () => {
    expect(verify(lines)).toEqual({
      entries: 320,
      chains: 20,
      checkpoints: 4,
      signed: 0,
      anchored: 0,
      covered: 320,
      vouched: 320,
      trimmed: 0,
    });
    const without = exported(record({ entries: 50, resources: 20, every: 0 }));
    expect(verify(without)).toMatchObject({ entries: 50, checkpoints: 0, covered: 0 });
    expect(verify(exported(record({ entries: 0, resources: 2, every: 0 })))).toMatchObject({ entries: 0, chains: 0 });
  });

  it('finds and names every flip, drop, copy, swap, cut, fork and forgery at every position', () => {
    expect(missedBy(verify, lines)).toEqual([]);
    // So many that none was left out at any of the 320 entries, the header, the 4 checkpoints and the end.
    const made: Record<string, number> = {};
    for (const { what } of mutationsOf(lines)) {
      const verb = what.slice(0, what.indexOf(' '));
      made[verb] = (made[verb] ?? 0) + 1;
    }
    const [entries, all] = [320, 326];
    expect(made).toEqual({
      ...{ flip: 3 * all, change: entries, drop: all, swap: all - 1, cut: all },
      ...{ insert: 2 * all + 2 * entries, fork: 2 * entries, replace: entries },
    });
  });

  it('finds and names the end of every chain, cut off at every entry and sealed anew, by the checkpoint that covers it', () => {
    const missed: string[] = [];
    for (const [resource, chain] of history.chains) {
      for (const [kept, { seq }] of chain.entries()) {
        const last = chain[kept - 1];
        const heads = history.heads.flatMap((head) => {
          if (head.resource !== resource) return [head];
          return last === undefined ? [] : [{ resource, seq: last.seq, hash: last.hash }];
        });
        const chains = new Map([...history.chains, [resource, chain.slice(0, kept)] as const]);
        const { finding } = verify(exported({ ...history, chains, heads }));
        const isNamed = finding?.kind === 'truncated' && finding.resource === resource && (finding.seq ?? 0) >= seq;
        if (!isNamed) missed.push(`${resource} from ${seq} on: ${JSON.stringify(finding)}`);
      }
    }
    expect(missed).toEqual([]);
  });

  it('would not pass with a bug: one that skips the previous hash, one that ignores the end', () => {
    class Careless extends ChainCheck {
      protected override follows({ seq }: Link): boolean {
        return seq === this.seq + 1;
      }
    }
    class WithoutLinks extends Verifier {
      protected override newChain(): ChainCheck {
        return new Careless(NO_ENTRY);
      }
    }
    class WithoutEnd extends Verifier {
      override finish(): Verification {
        const { finding, ...counts } = super.finish();
        // What only the end shows is at no line.
        return finding?.line === undefined ? counts : { ...counts, finding };
      }
    }
    const some = exported(record({ entries: 40, resources: 5, every: 0 }));
    const by = (Kind: typeof Verifier) => missedBy((lines) => readBy(new Kind({ digest: sha256 }), lines), some);
    expect(by(Verifier)).toEqual([]);
    expect(by(WithoutLinks).join('\n')).toMatch(/replace line \d+, with its hash: undefined/);
    expect(by(WithoutEnd).join('\n')).toMatch(/drop line \d+: undefined/);
  });

  it('names a line that is no JSON, unless the record is cut off there', () => {
    const torn = lines.with(9, (lines[9] as string).slice(0, 50));
    expect(verify(torn).finding).toMatchObject({ kind: 'changed', line: 10 });
    expect(verify(torn.slice(0, 10)).finding).toMatchObject({ kind: 'truncated' });
    expect(verify([...lines, 'more']).finding).toMatchObject({ kind: 'changed', line: lines.length + 1 });
  });

  it('reads entries that another program has written out anew, with their keys in another order', () => {
    const anew = lines.map((line) => {
      const fields = Object.entries(JSON.parse(line) as object).toReversed();
      return JSON.stringify(Object.fromEntries(fields), undefined, 1).replaceAll('\n', ' ');
    });
    expect(verify(anew).finding).toBeUndefined();
  });

  it('reads an export of some resources, and does not miss the others', () => {
    const resource = 'lock/7';
    const chain = history.chains.get(resource) ?? [];
    const heads = history.heads.filter((head) => head.resource === resource);
    const part = exported({ ...history, chains: new Map([[resource, chain]]), heads });
    expect(verify(part).finding).toMatchObject({ kind: 'truncated' });
    const header = headerLine({ v: 1, time: 1, by: 'test', only: [resource] }, sha256);
    expect(verify([header, ...part.slice(1)]).finding).toBeUndefined();
    expect(verify([header, ...part.slice(1, 5), ...part.slice(6)]).finding).toMatchObject({ kind: 'missing', seq: 1 });
  });
});

describe('a chain that was trimmed', () => {
  it.each([1, 2, 4])('verifies, because checkpoint %i covers what is gone', (number) => {
    const result = verify(exported(trimmed(history, number)));
    expect(result.finding).toBeUndefined();
    const gone = history.checkpoints[number - 1]?.entries ?? 0;
    expect(result).toMatchObject({ entries: 320 - gone, trimmed: gone, covered: 320 - gone });
  });

  it('verifies if only some chains were trimmed, and by later checkpoints too', () => {
    const some = trimmed(history, 3, (resource) => resource.startsWith('lock'));
    expect(verify(exported(some)).finding).toBeUndefined();
    const { checkpoints } = some;
    expect(verify(exported({ ...some, checkpoints: checkpoints.slice(3) })).finding).toBeUndefined();
  });

  it('does not verify without such a checkpoint, or with more gone than was said', () => {
    const some = trimmed(history, 2);
    const without = exported({ ...some, checkpoints: [] });
    expect(verify(without).finding).toMatchObject({ kind: 'not-covered', resource: 'lock/0' });
    const rootsOnly = some.checkpoints.map(({ heads: _heads, ...checkpoint }) => checkpoint);
    expect(verify(exported({ ...some, checkpoints: rootsOnly })).finding).toMatchObject({ kind: 'not-covered' });
    const chains = new Map([...some.chains].map(([name, chain]) => [name, chain.slice(1)]));
    expect(verify(exported({ ...some, chains })).finding).toMatchObject({ kind: 'missing', resource: 'lock/0' });
  });

  it('shows every mutation of what is left', () => {
    const some = exported(trimmed(record({ entries: 60, resources: 6, every: 20 }), 2));
    expect(missedBy(verify, some)).toEqual([]);
  });
});

describe('somebody who writes the whole history anew, with all hashes', () => {
  const shape = { entries: 60, resources: 6, every: 20 };
  const { sign, publicKey } = signer();
  const verifySignature: VerifySignature = (text, { ed25519 }) =>
    verifyBytes(null, Buffer.from(text), publicKey, Buffer.from(ed25519, 'base64'))
      ? undefined
      : 'another key signed it';
  const honest = record({ ...shape, sign });
  const anchors = honest.checkpoints.map(({ heads: _heads, ...checkpoint }): Checkpoint => checkpoint);

  it('goes unseen without a checkpoint elsewhere: chains alone cannot show it', () => {
    expect(verify(exported(record({ ...shape, actor: 'mallory' }))).finding).toBeUndefined();
  });

  it('is found by a checkpoint that was anchored', () => {
    expect(verify(exported(honest), { anchors })).toMatchObject({ anchored: 3, covered: 60 });
    expect(verify(exported(honest), { anchors }).finding).toBeUndefined();
    for (const anchor of anchors) {
      const { finding } = verify(exported(record({ ...shape, actor: 'mallory' })), { anchors: [anchor] });
      expect(finding).toMatchObject({ kind: 'changed', checkpoint: anchor.number, why: 'another one was anchored' });
    }
  });

  it('is found wherever in 320 entries it begins, by the last anchor and by the signature', () => {
    const whole = { entries: 320, resources: 20 };
    const signed = record({ ...whole, sign });
    const last = signed.checkpoints.slice(-1);
    const { sign: byAnother } = signer();
    const unseen: string[] = [];
    for (let forgedFrom = 0; forgedFrom < whole.entries; forgedFrom += 29) {
      const forged = exported(record({ ...whole, actor: 'mallory', forgedFrom, sign: byAnother }));
      if (verify(forged).finding !== undefined) unseen.push(`${forgedFrom}: the chains alone showed it`);
      if (verify(forged, { anchors: last }).finding?.kind !== 'changed') unseen.push(`${forgedFrom}, by the anchor`);
      if (verify(forged, { verifySignature }).finding?.kind !== 'bad-signature')
        unseen.push(`${forgedFrom}, by the key`);
    }
    expect(unseen).toEqual([]);
  });

  it('is found by an anchor also if the checkpoint, or all of them, are left out', () => {
    const forged = record({ ...shape, actor: 'mallory' });
    for (const checkpoints of [[], forged.checkpoints.slice(0, 1)]) {
      const { finding } = verify(exported({ ...forged, checkpoints }), { anchors: anchors.slice(1) });
      expect(finding).toMatchObject({ kind: 'not-covered', checkpoint: 2 });
    }
    const { finding } = verify(exported({ ...forged, checkpoints: forged.checkpoints.slice(1) }), {
      anchors: anchors.slice(0, 1),
    });
    expect(finding).toMatchObject({ kind: 'changed', checkpoint: 1 });
  });

  it('is found by the signature: missing, of another key, or of another checkpoint', () => {
    expect(verify(exported(honest), { verifySignature })).toMatchObject({ signed: 3, checkpoints: 3 });
    expect(verify(exported(honest), { verifySignature }).finding).toBeUndefined();
    const forged = record({ ...shape, actor: 'mallory' });
    const lifted = forged.checkpoints.map((checkpoint, i) => {
      const { signature } = honest.checkpoints[i] ?? {};
      return { ...checkpoint, ...(signature && { signature }) };
    });
    const found = (checkpoints: readonly Checkpoint[]) =>
      verify(exported({ ...forged, checkpoints }), { verifySignature }).finding;
    expect(found(forged.checkpoints)).toMatchObject({ kind: 'bad-signature', checkpoint: 1 });
    expect(found([])).toMatchObject({ kind: 'bad-signature' });
    expect(found(lifted)).toMatchObject({ kind: 'bad-signature', checkpoint: 1 });
    const bySelf = record({ ...shape, actor: 'mallory', sign: signer().sign });
    expect(verify(exported(bySelf), { verifySignature }).finding).toMatchObject({
      kind: 'bad-signature',
      checkpoint: 1,
    });
  });

  it('is found if only the entries are new, and the signed checkpoints stay', () => {
    const forged = { ...record({ ...shape, actor: 'mallory' }), checkpoints: honest.checkpoints };
    expect(verify(exported(forged), { verifySignature }).finding).toMatchObject({
      kind: 'changed',
      resource: 'lock/0',
    });
  });

  it('leaves checkpoints without a signature before the first that has one to that one', () => {
    const unsigned = record({ ...shape, every: 60 }).checkpoints[0];
    const heads = honest.checkpoints[2]?.heads ?? [];
    const signed = nextCheckpoint(unsigned, heads, 5, sha256, sign);
    const both = { ...honest, checkpoints: [...(unsigned ? [unsigned] : []), signed] };
    expect(verify(exported(both), { verifySignature })).toMatchObject({ signed: 1, checkpoints: 2 });
    expect(verify(exported(both), { verifySignature }).finding).toBeUndefined();
  });
});
