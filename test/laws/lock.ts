/** The laws of locks. */
import { isStale } from '../../src/core/hold.ts';
import type { Lock, LockHold, LockRequest } from '../../src/core/lock.ts';
import { holdLaws } from './holds.ts';
import type { Laws, Wish } from './law.ts';
import type { Rules } from './order.ts';
import { waitingLaws } from './waiting.ts';

export const lockRules: Rules<Lock> = {
  canHave({ record }, holds, wish, own, at) {
    const wanted = (wish as LockRequest).mode;
    const others = (holds as readonly LockHold[]).filter(
      (hold) => hold.id !== own?.id && (hold.mode === 'exclusive' || wanted === 'exclusive'),
    );
    const mayReclaim = record.onStale === 'reclaim' || wish.steal === true;
    return others.every((hold) => mayReclaim && isStale(hold, at));
  },
  covers: (hold, wish) => (hold as LockHold).mode === 'exclusive' || (wish as LockRequest).mode === 'shared',
  wish(command, own) {
    const { id = '', request = id, lease = '', holder = '' } = command;
    const asked = { mode: 'exclusive', priority: 0, ...command, id: request, lease, holder } as Wish;
    return own === undefined ? asked : { ...asked, upgrades: own.id };
  },
  wrongWith(_lock, hold, own, others) {
    if (own !== undefined && hold.id !== own.id) return `${hold.holder} holds twice`;
    const beside = others as readonly LockHold[];
    const clash = beside.find(({ mode }) => mode === 'exclusive' || (hold as LockHold).mode === 'exclusive');
    return clash === undefined ? undefined : `${hold.holder} got it beside ${clash.holder}`;
  },
  never: ({ record }, { upgrades }, at) =>
    upgrades !== undefined && !record.holds.some((hold) => hold.id === upgrades && !isStale(hold, at)),
  isAsked: (hold, wish) => (hold as LockHold).mode === (wish as LockRequest).mode,
  isClosed: ({ record }) => record.holds.length === 1 && record.holds[0]?.mode === 'exclusive',
  remains: (hold, event) => (event.type === 'lock:downgraded' ? ({ ...hold, mode: 'shared' } as LockHold) : undefined),
};

export const lockLaws: Laws<Lock> = {
  'a lock is free, or held by one, or shared by readers': ({ step }) => {
    const { holds } = step.state.record;
    const isFine = holds.length < 2 || holds.every(({ mode }) => mode === 'shared');
    return isFine ? undefined : holds.map(({ holder, mode }) => `${holder} ${mode}`).join();
  },

  'two readers never wait to become the writer': ({ at, step }) => {
    const { record, waiting } = step.state;
    const upgraders = waiting.filter(
      ({ upgrades, lease }) =>
        !at.gone(lease) && record.holds.some((hold) => hold.id === upgrades && !isStale(hold, at)),
    );
    const holds = new Set(upgraders.map(({ upgrades }) => upgrades));
    return holds.size < 2 ? undefined : upgraders.map(({ holder }) => holder).join();
  },

  ...(holdLaws as Laws<Lock>),
  ...waitingLaws(lockRules),
};
