import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AssetChange, decideAssets, decideMove, ownersOf, type RecordedAsset } from './assets.ts';
import type { Asset, Member } from './view.ts';

const asset = (id: string, since: number, isExclusive = false): Asset => ({ id, since, isExclusive });
const member = (id: string, ...assets: readonly Asset[]): Member => ({
  id,
  incarnation: 1,
  metadata: undefined,
  weight: 1,
  joinedAt: 0,
  assets,
});
const add = (assets: readonly string[], isExclusive = false): AssetChange => ({ kind: 'add', assets, isExclusive });

describe('the registry', () => {
  it('lists all owners of an asset in the order in which they registered it', () => {
    const members = [member('a', asset('x', 9)), member('b', asset('y', 2), asset('x', 3)), member('c')];
    expect(ownersOf('x', members)).toEqual(['b', 'a']);
    expect(ownersOf('z', members)).toEqual([]);
  });

  it('refuses an exclusive asset that another member has, and any asset that another member has exclusively', () => {
    const others = [member('b', asset('x', 3), asset('y', 4, true))];
    expect(decideAssets([], add(['x']), others)).toMatchObject({ kind: 'write' });
    expect(decideAssets([], add(['w', 'x'], true), others)).toEqual({ kind: 'asset-taken', asset: 'x', owner: 'b' });
    expect(decideAssets([], add(['y']), others)).toEqual({ kind: 'asset-taken', asset: 'y', owner: 'b' });
  });

  it('keeps the place of what a member has already, and writes nothing if nothing changes', () => {
    const own = [asset('x', 3), asset('y', 4)];
    expect(decideAssets(own, add(['y']), [])).toEqual({ kind: 'unchanged' });
    const set = decideAssets(own, { kind: 'set', assets: ['z', 'y'], isExclusive: false }, []);
    expect(set).toMatchObject({ assets: [asset('y', 4), { id: 'z', isExclusive: false }] });
    expect(decideAssets(own, { kind: 'remove', assets: ['q'] }, [])).toEqual({ kind: 'unchanged' });
  });

  it('moves assets whole, and a move that has been made again changes nothing', () => {
    const members = [member('a', asset('x', 1, true), asset('y', 2)), member('b')];
    const move = decideMove(['x'], 'a', 'b', members);
    expect(move).toEqual({ kind: 'write', from: [asset('y', 2)], to: [{ id: 'x', isExclusive: true }] });
    const after = [member('a', asset('y', 2)), member('b', asset('x', 5, true))];
    expect(decideMove(['x'], 'a', 'b', after)).toEqual({ kind: 'unchanged' });
    expect(decideMove(['z'], 'a', 'b', after)).toEqual({ kind: 'not-owner', asset: 'z', owners: [] });
    expect(decideMove(['y'], 'a', 'c', after)).toEqual({ kind: 'no-member', member: 'c' });
    expect(decideMove(['y'], 'd', 'b', after)).toEqual({ kind: 'no-member', member: 'd' });
  });

  it('never lets two members have an asset that one of them has exclusively, whatever is asked in whatever order', () => {
    const names = fc.constantFrom('a', 'b', 'c');
    const assets = fc.uniqueArray(fc.constantFrom('x', 'y', 'z'), { maxLength: 3 });
    const asked = fc.oneof(
      fc.record({
        who: names,
        change: fc.record({ kind: fc.constantFrom('add', 'set'), assets, isExclusive: fc.boolean() }),
      }),
      fc.record({ who: names, change: fc.record({ kind: fc.constant('remove'), assets }) }),
      fc.record({ who: names, to: names, assets }),
    );
    fc.assert(
      fc.property(fc.array(asked, { maxLength: 20 }), (steps) => {
        let members: readonly Member[] = ['a', 'b', 'c'].map((id) => member(id));
        steps.forEach((step, revision) => {
          const write = (id: string, written: readonly RecordedAsset[]): void => {
            const own = written.map((one) => ({ since: revision, ...one }));
            members = members.map((one) => (one.id === id ? { ...one, assets: own } : one));
          };
          if ('to' in step) {
            const move = decideMove(step.assets, step.who, step.to, members);
            if (move.kind === 'write') {
              write(step.who, move.from);
              write(step.to, move.to);
            }
          } else {
            const others = members.filter(({ id }) => id !== step.who);
            const own = members.find(({ id }) => id === step.who)?.assets ?? [];
            const decision = decideAssets(own, step.change as AssetChange, others);
            if (decision.kind === 'write') write(step.who, decision.assets);
          }
          for (const id of ['x', 'y', 'z']) {
            const owned = members.flatMap((one) => one.assets.filter((own) => own.id === id));
            if (owned.some(({ isExclusive }) => isExclusive)) expect(owned).toHaveLength(1);
          }
        });
      }),
    );
  });
});
