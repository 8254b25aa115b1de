import { describe, expect, it } from 'vitest';
import { faultOf, grantFault, semaphoreFault } from './fault.ts';
import type { LockRecord } from './lock.ts';
import type { SemaphoreRecord } from './semaphore.ts';

const hold = (holder: string, token: number) => ({ id: holder, holder, token, lease: 'l', acquiredAt: 0 });
const common = { v: 1, onStale: 'reclaim', passed: null } as const;
const lock = (token: number, ...holds: LockRecord['holds']): LockRecord => ({ ...common, kind: 'lock', token, holds });
const slots = (capacity: number, token: number, ...holds: SemaphoreRecord['holds']): SemaphoreRecord => {
  return { ...common, kind: 'semaphore', capacity, token, holds };
};
const reader = (holder: string, token: number) => ({ ...hold(holder, token), mode: 'shared' as const });
const writer = (holder: string, token: number) => ({ ...hold(holder, token), mode: 'exclusive' as const });
const has = (holder: string, token: number, ...numbers: readonly number[]) => {
  return { ...hold(holder, token), weight: numbers.length, slots: numbers };
};

describe('a record that breaks a promise is reported with its values:', () => {
  it.each<[string, string | undefined, string]>([
    ['nothing', faultOf(lock(2, reader('a', 1), reader('b', 2))), ''],
    ['two writers', faultOf(lock(2, writer('a', 1), writer('b', 2))), 'a holds it exclusively, together with 1 others'],
    ['a writer beside a reader', faultOf(lock(2, reader('a', 1), writer('b', 2))), 'b holds it exclusively'],
    ['a token above the last', faultOf(lock(1, writer('a', 2))), 'a holds token 2, and the last one given out is 1'],
    ['a token that went back', faultOf(lock(3), lock(4)), 'token 3 comes after 4'],
    [
      'a token given out again',
      faultOf(lock(4, writer('b', 4)), lock(4)),
      'b got token 4, and 4 was given out already',
    ],
    [
      'more slots than there are',
      faultOf(slots(2, 2, has('a', 1, 0, 1), has('b', 2, 2)), slots(2, 1, has('a', 1, 0, 1))),
      '3 slots are in use, of 2',
    ],
    ['slots from before a shrinking', faultOf(slots(1, 1, has('a', 1, 0, 1)), slots(4, 1, has('a', 1, 0, 1))), ''],
    [
      'fewer slots than weight',
      faultOf(slots(4, 1, { ...has('a', 1, 0), weight: 3 })),
      'a has a weight of 3, and 1 slots',
    ],
    [
      'a slot that two have',
      semaphoreFault(slots(4, 2, has('a', 1, 0), has('b', 2, 0)), undefined, true),
      'slot 0 is held twice',
    ],
  ])('%s', (_what, fault, told) => {
    if (told === '') expect(fault).toBeUndefined();
    else expect(fault).toContain(told);
  });
});

describe('a hold that does not answer what was asked for is reported with its values:', () => {
  const asked = { id: 'a', holder: 'a', lease: 'l' };
  it.each<[string, string | undefined, string]>([
    ['what was asked for', grantFault({ ...asked, mode: 'shared' }, reader('a', 1)), ''],
    ['a re-entry that is more', grantFault({ ...asked, id: 'b', lease: 'm', mode: 'shared' }, writer('a', 1)), ''],
    ['slots', grantFault({ ...asked, weight: 2 }, has('a', 1, 0, 1)), ''],
    ['the hold of another', grantFault(asked, writer('b', 1)), 'a asked for it, and b was given it'],
    ['another lease', grantFault({ ...asked, lease: 'm' }, writer('a', 1)), 'a asked under the lease m, and got l'],
    ['another lease of a detached hold', grantFault({ ...asked, lease: 'm', detached: true }, writer('a', 1)), ''],
    ['no token', grantFault(asked, writer('a', 0)), 'a was given token 0'],
    [
      'less of a lock',
      grantFault({ ...asked, mode: 'exclusive' }, reader('a', 1)),
      'asked for it exclusive, and got it shared',
    ],
    ['fewer slots', grantFault({ ...asked, weight: 3 }, has('a', 1, 0, 1)), 'a asked for 3 slots, and got 2'],
    [
      'slots that do not add up',
      grantFault({ ...asked, weight: 1 }, { ...has('a', 1, 0), weight: 2 } as never),
      'a weight of 2, and 1 slots',
    ],
  ])('%s', (_what, fault, told) => {
    if (told === '') expect(fault).toBeUndefined();
    else expect(fault).toContain(told);
  });
});
