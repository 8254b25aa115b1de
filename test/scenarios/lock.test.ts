/** SPEC 1, row by row and sentence by sentence, as far as the bare machine can show it. */
import { afterAll, describe } from 'vitest';
import { aLock, stopServer } from './settings.ts';
import { story } from './story.ts';

afterAll(stopServer);

describe('asking for a lock', () => {
  story('a free lock is acquired', aLock)`
    > ci-1 tries
    = acquired #1
    ! lock:acquired ci-1 #1
    ~ ci-1 #1
  `;

  story('a holder that asks again has it already, by the same token', aLock)`
    > ci-1 acquires
    = acquired #1
    ! lock:acquired ci-1 #1
    ~ ci-1 #1

    > ci-1 acquires
    = extended #1
    ~ nothing changes

    # An inner re-entry is not counted: one release is enough.
    > ci-1 releases
    = released
    ! lock:released ci-1 #1
    ~ free
  `;

  story('a lock whose holder is gone is reclaimed, and the next token is larger', aLock)`
    > ci-1 acquires
    = acquired #1
    ! lock:acquired ci-1 #1
    ~ ci-1 #1

    > ci-1's lease ends
    ~ ci-1 #1 (stale)

    > ci-2 tries
    = reclaimed #2
    ! lock:reclaimed ci-1 #1
    ! lock:acquired ci-2 #2
    - ci-1 #1: reclaimed by ci-2
    ~ ci-2 #2
  `;

  story('a refused try learns who has it, since when and why, and changes nothing', aLock)`
    > 5s pass
    ~ free

    > ci-1 acquires, because "deploying 7.2"
    = acquired #1
    ! lock:acquired ci-1 #1
    ~ ci-1 #1

    > 30s pass
    ~ ci-1 #1

    > ci-2 tries
    = busy: ci-1 #1 since 5s, because "deploying 7.2"
    ! lock:denied ci-2
    ~ nothing changes
  `;

  story('a waiter learns its place', aLock)`
    > ci-1 acquires
    = acquired #1
    ! lock:acquired ci-1 #1
    ~ ci-1 #1

    > ci-2 acquires
    = queued at 1: ci-1 #1 since 0s
    ! lock:queued ci-2 at 1
    ~ ci-1 #1, then ci-2

    > ci-3 acquires
    = queued at 2: ci-1 #1 since 0s
    ! lock:queued ci-3 at 2
    ~ ci-1 #1, then ci-2, ci-3
  `;
});

describe('letting go of a lock', () => {
  story('a released lock goes, in the same step, to the request that waited longest', aLock)`
    > ci-1 acquires
    = acquired #1
    ! lock:acquired ci-1 #1
    ~ ci-1 #1

    > ci-2 acquires
    = queued at 1: ci-1 #1 since 0s
    ! lock:queued ci-2 at 1
    ~ ci-1 #1, then ci-2

    > ci-3 acquires
    = queued at 2: ci-1 #1 since 0s
    ! lock:queued ci-3 at 2
    ~ ci-1 #1, then ci-2, ci-3

    > ci-1 releases
    = released
    ! lock:released ci-1 #1
    ! lock:acquired ci-2 #2
    + ci-2: acquired #2
    ~ ci-2 #2, then ci-3

    > ci-2 releases
    = released
    ! lock:released ci-2 #2
    ! lock:acquired ci-3 #3
    + ci-3: acquired #3
    ~ ci-3 #3

    > ci-3 releases
    = released
    ! lock:released ci-3 #3
    ~ free
  `;

  story('only its holder can release it', aLock)`
    > ci-1 acquires
    = acquired #1
    ! lock:acquired ci-1 #1
    ~ ci-1 #1

    > ci-2 releases
    = not-owner: ci-1 #1 since 0s
    ~ nothing changes

    > ci-1 releases
    = released
    ! lock:released ci-1 #1
    ~ free

    > ci-1 releases
    = already-free
    ~ nothing changes
  `;

  story("a client that slept past its lease cannot release the next holder's lock", aLock)`
    > ci-1 acquires
    = acquired #1
    ! lock:acquired ci-1 #1
    ~ ci-1 #1

    > ci-1's lease ends
    ~ ci-1 #1 (stale)

    > ci-2 acquires
    = reclaimed #2
    ! lock:reclaimed ci-1 #1
    ! lock:acquired ci-2 #2
    - ci-1 #1: reclaimed by ci-2
    ~ ci-2 #2

    > ci-1 releases
    = not-owner: ci-2 #2 since 0s
    ~ nothing changes

    > ci-1 renews
    = not-owner: ci-2 #2 since 0s
    ~ nothing changes
  `;

  story('the same holder, started again, is not disturbed by its own past', aLock)`
    > ci-1 acquires
    = acquired #1
    ! lock:acquired ci-1 #1
    ~ ci-1 #1

    > ci-1's lease ends
    ~ ci-1 #1 (stale)

    > ci-1 starts again
    ~ ci-1 #1 (stale)

    > ci-1 tries
    = reclaimed #2
    ! lock:reclaimed ci-1 #1
    ! lock:acquired ci-1 #2
    - ci-1 #1: reclaimed by ci-1
    ~ ci-1 #2

    > ci-1 releases #1
    = not-owner: ci-1 #2 since 0s
    ~ nothing changes

    > ci-1 renews #1
    = not-owner: ci-1 #2 since 0s
    ~ nothing changes

    > ci-1 renews
    = refreshed #2
    ~ nothing changes

    > ci-1 releases
    = released
    ! lock:released ci-1 #2
    ~ free
  `;

  story('tokens grow over release, reclaim and force', aLock)`
    > a acquires
    = acquired #1
    ! lock:acquired a #1
    ~ a #1

    > a releases
    = released
    ! lock:released a #1
    ~ free

    > b acquires
    = acquired #2
    ! lock:acquired b #2
    ~ b #2

    > b's lease ends
    ~ b #2 (stale)

    > c tries
    = reclaimed #3
    ! lock:reclaimed b #2
    ! lock:acquired c #3
    - b #2: reclaimed by c
    ~ c #3

    > admin forces, because "c is stuck"
    = acquired #4
    ! lock:forced c #3 by admin reason c is stuck
    ! lock:acquired admin #4
    - c #3: forced by admin, because "c is stuck"
    ~ admin #4

    > admin releases
    = released
    ! lock:released admin #4
    ~ free

    > d tries
    = acquired #5
    ! lock:acquired d #5
    ~ d #5
  `;
});

describe('keeping a lock', () => {
  story('a holder that renews keeps it', aLock)`
    > ci-1 acquires
    = acquired #1
    ! lock:acquired ci-1 #1
    ~ ci-1 #1

    > ci-1 renews
    = refreshed #1
    ~ nothing changes

    > ci-2 renews
    = not-owner: ci-1 #1 since 0s
    ~ nothing changes
  `;

  story('a stale holder cannot revive, even while nobody else wants the lock', aLock)`
    > ci-1 acquires
    = acquired #1
    ! lock:acquired ci-1 #1
    ~ ci-1 #1

    > ci-1's lease ends
    ~ ci-1 #1 (stale)

    > ci-1 renews
    = lost
    ~ nothing changes

    > ci-1 extends
    = lost
    ~ nothing changes

    > maintenance
    = maintained: ci-1 reclaimed
    ! lock:reclaimed ci-1 #1
    - ci-1 #1: reclaimed
    ~ free

    > ci-1 renews
    = already-free
    ~ nothing changes
  `;

  story('a lease can be extended while holding', aLock)`
    > ci-1 acquires
    = acquired #1
    ! lock:acquired ci-1 #1
    ~ ci-1 #1

    > ci-1 extends
    = refreshed #1
    ~ ci-1 #1

    > ci-1's lease ends
    ~ ci-1 #1

    > ci-1 renews
    = refreshed #1
    ~ nothing changes

    > ci-2 tries
    = busy: ci-1 #1 since 0s
    ! lock:denied ci-2
    ~ nothing changes

    > ci-1's extended lease ends
    ~ ci-1 #1 (stale)

    > ci-1 renews
    = lost
    ~ nothing changes

    > ci-2 tries
    = reclaimed #2
    ! lock:reclaimed ci-1 #1
    ! lock:acquired ci-2 #2
    - ci-1 #1: reclaimed by ci-2
    ~ ci-2 #2
  `;

  story('a hold past its maxHold is stale although it renews', aLock)`
    > ci-1 acquires, at most 60s
    = acquired #1
    ! lock:acquired ci-1 #1
    ~ ci-1 #1

    > ci-1 renews
    = refreshed #1
    ~ nothing changes

    > ci-1's time is up
    ~ ci-1 #1 (stale)

    > ci-1 renews
    = lost
    ~ nothing changes

    > ci-1 extends
    = lost
    ~ nothing changes

    > ci-2 tries
    = reclaimed #2
    ! lock:reclaimed ci-1 #1
    ! lock:acquired ci-2 #2
    - ci-1 #1: reclaimed by ci-2
    ~ ci-2 #2
  `;

  story('a hold that became stale is warned of once', aLock)`
    > ci-1 acquires
    = acquired #1
    ! lock:acquired ci-1 #1
    ~ ci-1 #1

    > tick
    = unchanged
    ~ nothing changes

    > ci-1's lease ends
    ~ ci-1 #1 (stale)

    > tick
    = unchanged
    ! lock:stale ci-1 #1
    ~ ci-1 #1 (stale)

    > tick
    = unchanged
    ~ nothing changes

    > ci-2 tries
    = reclaimed #2
    ! lock:reclaimed ci-1 #1
    ! lock:acquired ci-2 #2
    - ci-1 #1: reclaimed by ci-2
    ~ ci-2 #2

    > ci-2's lease ends
    ~ ci-2 #2 (stale)

    > tick
    = unchanged
    ! lock:stale ci-2 #2
    ~ ci-2 #2 (stale)
  `;

  story('maintenance frees a stale lock', aLock)`
    > ci-1 acquires
    = acquired #1
    ! lock:acquired ci-1 #1
    ~ ci-1 #1

    > maintenance
    = maintained: nobody reclaimed
    ~ nothing changes

    > ci-1's lease ends
    ~ ci-1 #1 (stale)

    > maintenance
    = maintained: ci-1 reclaimed
    ! lock:reclaimed ci-1 #1
    - ci-1 #1: reclaimed
    ~ free

    > maintenance
    = maintained: nobody reclaimed
    ~ nothing changes
  `;

  story('maintenance gives a stale lock to the waiter', aLock)`
    > ci-1 acquires
    = acquired #1
    ! lock:acquired ci-1 #1
    ~ ci-1 #1

    > ci-2 acquires
    = queued at 1: ci-1 #1 since 0s
    ! lock:queued ci-2 at 1
    ~ ci-1 #1, then ci-2

    > ci-1's lease ends
    ~ ci-1 #1 (stale), then ci-2

    > maintenance
    = maintained: ci-1 reclaimed
    ! lock:reclaimed ci-1 #1
    ! lock:acquired ci-2 #2
    + ci-2: acquired #2
    - ci-1 #1: reclaimed
    ~ ci-2 #2
  `;
});

describe('stale locks and those who wait for them', () => {
  story('a stale hold does not let a newcomer past the queue', aLock)`
    > a acquires
    = acquired #1
    ! lock:acquired a #1
    ~ a #1

    > b acquires
    = queued at 1: a #1 since 0s
    ! lock:queued b at 1
    ~ a #1, then b

    > a's lease ends
    ~ a #1 (stale), then b

    > c tries
    = busy: a #1 (stale) since 0s
    ! lock:denied c
    ~ nothing changes

    > c acquires
    = queued at 1: b #2 since 0s
    ! lock:reclaimed a #1
    ! lock:acquired b #2
    ! lock:queued c at 1
    + b: reclaimed #2
    - a #1: reclaimed by b
    ~ b #2, then c
  `;

  story('not even a newcomer with a high priority', aLock)`
    > a acquires
    = acquired #1
    ! lock:acquired a #1
    ~ a #1

    > b acquires
    = queued at 1: a #1 since 0s
    ! lock:queued b at 1
    ~ a #1, then b

    > a's lease ends
    ~ a #1 (stale), then b

    > c acquires, priority 9
    = queued at 1: b #2 since 0s
    ! lock:reclaimed a #1
    ! lock:acquired b #2
    ! lock:queued c at 1
    + b: reclaimed #2
    - a #1: reclaimed by b
    ~ b #2, then c (9)
  `;

  story('the queue moves on as soon as a process looks', aLock)`
    > a acquires
    = acquired #1
    ! lock:acquired a #1
    ~ a #1

    > b acquires
    = queued at 1: a #1 since 0s
    ! lock:queued b at 1
    ~ a #1, then b

    > c acquires
    = queued at 2: a #1 since 0s
    ! lock:queued c at 2
    ~ a #1, then b, c

    > a's lease ends
    ~ a #1 (stale), then b, c

    > settle
    = settled
    ! lock:reclaimed a #1
    ! lock:acquired b #2
    + b: reclaimed #2
    - a #1: reclaimed by b
    ~ b #2, then c
  `;

  story('a waiter that died is never granted, and holds nobody up', aLock)`
    > a acquires
    = acquired #1
    ! lock:acquired a #1
    ~ a #1

    > b acquires
    = queued at 1: a #1 since 0s
    ! lock:queued b at 1
    ~ a #1, then b

    > c acquires
    = queued at 2: a #1 since 0s
    ! lock:queued c at 2
    ~ a #1, then b, c

    > b's lease ends
    ~ a #1, then b, c

    > a releases
    = released
    ! lock:released a #1
    ! lock:acquired c #2
    + c: acquired #2
    ~ c #2
  `;

  story('a request whose lease is gone already gets nothing', aLock)`
    > a's lease ends
    ~ free

    > a tries
    = lost
    ~ nothing changes

    > a starts again
    ~ free

    > a tries
    = acquired #1
    ! lock:acquired a #1
    ~ a #1
  `;

  story('when all who wait are dead, a newcomer has it at once', aLock)`
    > a acquires
    = acquired #1
    ! lock:acquired a #1
    ~ a #1

    > b acquires
    = queued at 1: a #1 since 0s
    ! lock:queued b at 1
    ~ a #1, then b

    > b's lease ends
    ~ a #1, then b

    > a's lease ends
    ~ a #1 (stale), then b

    > c tries
    = reclaimed #2
    ! lock:reclaimed a #1
    ! lock:acquired c #2
    - a #1: reclaimed by c
    ~ c #2
  `;

  story('where a person must decide, a stale hold stays: for a try, for those who wait, and for maintenance', aLock)`
    > stale holds wait for a person
    = configured
    ~ free

    > a acquires
    = acquired #1
    ! lock:acquired a #1
    ~ a #1

    > a's lease ends
    ~ a #1 (stale)

    > b tries
    = busy: a #1 (stale) since 0s
    ! lock:denied b
    ~ nothing changes

    > b acquires
    = queued at 1: a #1 (stale) since 0s
    ! lock:queued b at 1
    ~ a #1 (stale), then b

    > maintenance
    = maintained: nobody reclaimed
    ~ nothing changes

    > tick
    = unchanged
    ! lock:stale a #1
    ~ a #1 (stale), then b

    # The person decides.
    > admin breaks it, because "a is off"
    = broken: a #1 (stale)
    ! lock:forced a #1 by admin reason a is off
    ! lock:acquired b #2
    + b: acquired #2
    - a #1: forced by admin, because "a is off"
    ~ b #2
  `;

  story('steal-stale takes it there too', aLock)`
    > stale holds wait for a person
    = configured
    ~ free

    > a acquires
    = acquired #1
    ! lock:acquired a #1
    ~ a #1

    > b steals
    = busy: a #1 since 0s
    ! lock:denied b
    ~ nothing changes

    > a's lease ends
    ~ a #1 (stale)

    > b steals
    = reclaimed #2
    ! lock:reclaimed a #1
    ! lock:acquired b #2
    - a #1: reclaimed by b
    ~ b #2
  `;

  story('one that waits in order to steal gets it when the holder dies', aLock)`
    > stale holds wait for a person
    = configured
    ~ free

    > a acquires
    = acquired #1
    ! lock:acquired a #1
    ~ a #1

    > b acquires, stealing
    = queued at 1: a #1 since 0s
    ! lock:queued b at 1
    ~ a #1, then b

    > a's lease ends
    ~ a #1 (stale), then b

    > settle
    = settled
    ! lock:reclaimed a #1
    ! lock:acquired b #2
    + b: reclaimed #2
    - a #1: reclaimed by b
    ~ b #2
  `;

  story('once stale holds are reclaimed again, those who wait get theirs', aLock)`
    > stale holds wait for a person
    = configured
    ~ free

    > a acquires
    = acquired #1
    ! lock:acquired a #1
    ~ a #1

    > b acquires
    = queued at 1: a #1 since 0s
    ! lock:queued b at 1
    ~ a #1, then b

    > a's lease ends
    ~ a #1 (stale), then b

    > settle
    = settled
    ~ nothing changes

    > stale holds are reclaimed
    = configured
    ! lock:reclaimed a #1
    ! lock:acquired b #2
    + b: reclaimed #2
    - a #1: reclaimed by b
    ~ b #2
  `;
});

describe('taking a lock by force', () => {
  story('an administrator takes it, and the old holder learns why', aLock)`
    > a acquires
    = acquired #1
    ! lock:acquired a #1
    ~ a #1

    > b acquires
    = queued at 1: a #1 since 0s
    ! lock:queued b at 1
    ~ a #1, then b

    > admin forces, because "a hangs"
    = acquired #2
    ! lock:forced a #1 by admin reason a hangs
    ! lock:acquired admin #2
    - a #1: forced by admin, because "a hangs"
    ~ admin #2, then b

    > a renews
    = not-owner: admin #2 since 0s, because "a hangs"
    ~ nothing changes

    > a releases
    = not-owner: admin #2 since 0s, because "a hangs"
    ~ nothing changes

    > admin releases
    = released
    ! lock:released admin #2
    ! lock:acquired b #3
    + b: acquired #3
    ~ b #3
  `;

  story('an administrator breaks it, and the next in line has it', aLock)`
    > a acquires
    = acquired #1
    ! lock:acquired a #1
    ~ a #1

    > b acquires
    = queued at 1: a #1 since 0s
    ! lock:queued b at 1
    ~ a #1, then b

    > admin breaks it, because "a hangs"
    = broken: a #1
    ! lock:forced a #1 by admin reason a hangs
    ! lock:acquired b #2
    + b: acquired #2
    - a #1: forced by admin, because "a hangs"
    ~ b #2

    > b releases
    = released
    ! lock:released b #2
    ~ free

    > admin breaks it, because "just to be sure"
    = already-free
    ~ nothing changes
  `;

  story('force as a reader leaves other readers alone, and lets waiting readers in', aLock)`
    > w acquires
    = acquired #1
    ! lock:acquired w #1
    ~ w #1

    > r-1 acquires shared
    = queued at 1: w #1 since 0s
    ! lock:queued r-1 at 1
    ~ w #1, then r-1 shared

    > admin forces shared, because "reading on"
    = acquired #2
    ! lock:forced w #1 by admin reason reading on
    ! lock:acquired admin #2
    ! lock:acquired r-1 #3
    + r-1: acquired #3
    - w #1: forced by admin, because "reading on"
    ~ shared by admin #2, r-1 #3

    > admin-2 forces shared
    = acquired #4
    ! lock:acquired admin-2 #4
    ~ shared by admin #2, r-1 #3, admin-2 #4
  `;

  story('a request to upgrade what force took learns at once that it is lost', aLock)`
    > r-1 acquires shared
    = acquired #1
    ! lock:acquired r-1 #1
    ~ shared by r-1 #1

    > r-2 acquires shared
    = acquired #2
    ! lock:acquired r-2 #2
    ~ shared by r-1 #1, r-2 #2

    > r-2 upgrades
    = queued at 1: r-1 #1 since 0s
    ! lock:queued r-2 at 1
    ~ shared by r-1 #1, r-2 #2, then r-2 upgrades

    > admin forces, because "now"
    = acquired #3
    ! lock:forced r-1 #1 by admin reason now
    ! lock:forced r-2 #2 by admin reason now
    ! lock:acquired admin #3
    + r-2: lost
    - r-1 #1: forced by admin, because "now"
    - r-2 #2: forced by admin, because "now"
    ~ admin #3
  `;

  story('a reader that forces becomes the writer', aLock)`
    > r-1 acquires shared
    = acquired #1
    ! lock:acquired r-1 #1
    ~ shared by r-1 #1

    > r-2 acquires shared
    = acquired #2
    ! lock:acquired r-2 #2
    ~ shared by r-1 #1, r-2 #2

    > r-2 upgrades
    = queued at 1: r-1 #1 since 0s
    ! lock:queued r-2 at 1
    ~ shared by r-1 #1, r-2 #2, then r-2 upgrades

    > r-1 forces, because "now"
    = upgraded #3
    ! lock:forced r-2 #2 by r-1 reason now
    ! lock:acquired r-1 #3
    + r-2: lost
    - r-2 #2: forced by r-1, because "now"
    ~ r-1 #3
  `;
});

describe('readers and writers', () => {
  story('readers share, a writer waits for all of them', aLock)`
    > r-1 acquires shared
    = acquired #1
    ! lock:acquired r-1 #1
    ~ shared by r-1 #1

    > r-2 tries shared
    = acquired #2
    ! lock:acquired r-2 #2
    ~ shared by r-1 #1, r-2 #2

    > w acquires
    = queued at 1: r-1 #1 since 0s, r-2 #2 since 0s
    ! lock:queued w at 1
    ~ shared by r-1 #1, r-2 #2, then w

    > r-1 releases
    = released
    ! lock:released r-1 #1
    ~ shared by r-2 #2, then w

    > r-2 releases
    = released
    ! lock:released r-2 #2
    ! lock:acquired w #3
    + w: acquired #3
    ~ w #3
  `;

  story('a reader that comes after a waiting writer waits behind it', aLock)`
    > r-1 acquires shared
    = acquired #1
    ! lock:acquired r-1 #1
    ~ shared by r-1 #1

    > w acquires
    = queued at 1: r-1 #1 since 0s
    ! lock:queued w at 1
    ~ shared by r-1 #1, then w

    > r-2 tries shared
    = busy: r-1 #1 since 0s
    ! lock:denied r-2
    ~ nothing changes

    > r-2 acquires shared
    = queued at 2: r-1 #1 since 0s
    ! lock:queued r-2 at 2
    ~ shared by r-1 #1, then w, r-2 shared

    > r-1 releases
    = released
    ! lock:released r-1 #1
    ! lock:acquired w #2
    + w: acquired #2
    ~ w #2, then r-2 shared
  `;

  story('readers that wait side by side come in together', aLock)`
    > w-1 acquires
    = acquired #1
    ! lock:acquired w-1 #1
    ~ w-1 #1

    > r-1 acquires shared
    = queued at 1: w-1 #1 since 0s
    ! lock:queued r-1 at 1
    ~ w-1 #1, then r-1 shared

    > r-2 acquires shared
    = queued at 2: w-1 #1 since 0s
    ! lock:queued r-2 at 2
    ~ w-1 #1, then r-1 shared, r-2 shared

    > w-2 acquires
    = queued at 3: w-1 #1 since 0s
    ! lock:queued w-2 at 3
    ~ w-1 #1, then r-1 shared, r-2 shared, w-2

    > r-3 acquires shared
    = queued at 4: w-1 #1 since 0s
    ! lock:queued r-3 at 4
    ~ w-1 #1, then r-1 shared, r-2 shared, w-2, r-3 shared

    > w-1 releases
    = released
    ! lock:released w-1 #1
    ! lock:acquired r-1 #2
    ! lock:acquired r-2 #3
    + r-1: acquired #2
    + r-2: acquired #3
    ~ shared by r-1 #2, r-2 #3, then w-2, r-3 shared
  `;

  story('a sole reader upgrades at once, to a larger token', aLock)`
    > r-1 acquires shared
    = acquired #1
    ! lock:acquired r-1 #1
    ~ shared by r-1 #1

    > r-1 upgrades
    = upgraded #2
    ! lock:acquired r-1 #2
    ~ r-1 #2

    > r-1 releases #1
    = not-owner: r-1 #2 since 0s
    ~ nothing changes

    > r-1 releases
    = released
    ! lock:released r-1 #2
    ~ free
  `;

  story('an upgrade waits for the other readers, ahead of writers', aLock)`
    > r-1 acquires shared
    = acquired #1
    ! lock:acquired r-1 #1
    ~ shared by r-1 #1

    > r-2 acquires shared
    = acquired #2
    ! lock:acquired r-2 #2
    ~ shared by r-1 #1, r-2 #2

    > w acquires
    = queued at 1: r-1 #1 since 0s, r-2 #2 since 0s
    ! lock:queued w at 1
    ~ shared by r-1 #1, r-2 #2, then w

    > r-1 upgrades
    = queued at 1: r-2 #2 since 0s
    ! lock:queued r-1 at 1
    ~ shared by r-1 #1, r-2 #2, then w, r-1 upgrades

    > r-2 releases
    = released
    ! lock:released r-2 #2
    ! lock:acquired r-1 #3
    + r-1: upgraded #3
    ~ r-1 #3, then w

    > r-1 releases
    = released
    ! lock:released r-1 #3
    ! lock:acquired w #4
    + w: acquired #4
    ~ w #4
  `;

  story('an upgrade that may not wait is refused, and the reader stays a reader', aLock)`
    > r-1 acquires shared
    = acquired #1
    ! lock:acquired r-1 #1
    ~ shared by r-1 #1

    > r-2 acquires shared
    = acquired #2
    ! lock:acquired r-2 #2
    ~ shared by r-1 #1, r-2 #2

    > r-1 upgrades, or fails fast
    = busy: r-2 #2 since 0s
    ! lock:denied r-1
    ~ nothing changes

    > r-1 renews
    = refreshed #1
    ~ nothing changes
  `;

  story('a second upgrader is refused at once', aLock)`
    > r-1 acquires shared
    = acquired #1
    ! lock:acquired r-1 #1
    ~ shared by r-1 #1

    > r-2 acquires shared
    = acquired #2
    ! lock:acquired r-2 #2
    ~ shared by r-1 #1, r-2 #2

    > r-1 upgrades
    = queued at 1: r-2 #2 since 0s
    ! lock:queued r-1 at 1
    ~ shared by r-1 #1, r-2 #2, then r-1 upgrades

    > r-2 upgrades
    = upgrade-conflict with r-1
    ~ nothing changes

    # Asking for it exclusively is the same thing.
    > r-2 acquires
    = upgrade-conflict with r-1
    ~ nothing changes

    > r-2 releases
    = released
    ! lock:released r-2 #2
    ! lock:acquired r-1 #3
    + r-1: upgraded #3
    ~ r-1 #3
  `;

  story("an upgrader that died is nobody's rival", aLock)`
    > r-1 acquires shared
    = acquired #1
    ! lock:acquired r-1 #1
    ~ shared by r-1 #1

    > r-2 acquires shared
    = acquired #2
    ! lock:acquired r-2 #2
    ~ shared by r-1 #1, r-2 #2

    > r-1 upgrades
    = queued at 1: r-2 #2 since 0s
    ! lock:queued r-1 at 1
    ~ shared by r-1 #1, r-2 #2, then r-1 upgrades

    > r-1's lease ends
    ~ shared by r-1 #1 (stale), r-2 #2, then r-1 upgrades

    > r-2 upgrades
    = upgraded #3
    ! lock:reclaimed r-1 #1
    ! lock:acquired r-2 #3
    + r-1: lost
    - r-1 #1: reclaimed by r-2
    ~ r-2 #3
  `;

  story('a holder that leaves takes its wish to upgrade along', aLock)`
    > r-1 acquires shared
    = acquired #1
    ! lock:acquired r-1 #1
    ~ shared by r-1 #1

    > r-2 acquires shared
    = acquired #2
    ! lock:acquired r-2 #2
    ~ shared by r-1 #1, r-2 #2

    > w acquires
    = queued at 1: r-1 #1 since 0s, r-2 #2 since 0s
    ! lock:queued w at 1
    ~ shared by r-1 #1, r-2 #2, then w

    > r-1 upgrades
    = queued at 1: r-2 #2 since 0s
    ! lock:queued r-1 at 1
    ~ shared by r-1 #1, r-2 #2, then w, r-1 upgrades

    > r-1 releases
    = released
    ! lock:released r-1 #1
    + r-1: lost
    ~ shared by r-2 #2, then w

    > r-2 releases
    = released
    ! lock:released r-2 #2
    ! lock:acquired w #3
    + w: acquired #3
    ~ w #3
  `;

  story('asking exclusively for what one reads is an upgrade', aLock)`
    > r-1 acquires shared
    = acquired #1
    ! lock:acquired r-1 #1
    ~ shared by r-1 #1

    > r-1 tries
    = upgraded #2
    ! lock:acquired r-1 #2
    ~ r-1 #2

    > r-1 tries shared
    = extended #2
    ~ nothing changes
  `;

  story('a writer downgrades, and waiting readers join', aLock)`
    > w acquires
    = acquired #1
    ! lock:acquired w #1
    ~ w #1

    > r-1 acquires shared
    = queued at 1: w #1 since 0s
    ! lock:queued r-1 at 1
    ~ w #1, then r-1 shared

    > r-2 acquires shared
    = queued at 2: w #1 since 0s
    ! lock:queued r-2 at 2
    ~ w #1, then r-1 shared, r-2 shared

    > w-2 acquires
    = queued at 3: w #1 since 0s
    ! lock:queued w-2 at 3
    ~ w #1, then r-1 shared, r-2 shared, w-2

    > w downgrades
    = downgraded #1
    ! lock:downgraded w #1
    ! lock:acquired r-1 #2
    ! lock:acquired r-2 #3
    + r-1: acquired #2
    + r-2: acquired #3
    ~ shared by w #1, r-1 #2, r-2 #3, then w-2

    > w downgrades
    = downgraded #1
    ~ nothing changes
  `;

  story('a stale reader does not keep a writer out', aLock)`
    > r-1 acquires shared
    = acquired #1
    ! lock:acquired r-1 #1
    ~ shared by r-1 #1

    > r-2 acquires shared
    = acquired #2
    ! lock:acquired r-2 #2
    ~ shared by r-1 #1, r-2 #2

    > r-1's lease ends
    ~ shared by r-1 #1 (stale), r-2 #2

    > w tries
    = busy: r-1 #1 (stale) since 0s, r-2 #2 since 0s
    ! lock:denied w
    ~ nothing changes

    > r-2's lease ends
    ~ shared by r-1 #1 (stale), r-2 #2 (stale)

    > w tries
    = reclaimed #3
    ! lock:reclaimed r-1 #1
    ! lock:reclaimed r-2 #2
    ! lock:acquired w #3
    - r-1 #1: reclaimed by w
    - r-2 #2: reclaimed by w
    ~ w #3
  `;

  story('an upgrade takes what stale readers leave', aLock)`
    > r-1 acquires shared
    = acquired #1
    ! lock:acquired r-1 #1
    ~ shared by r-1 #1

    > r-2 acquires shared
    = acquired #2
    ! lock:acquired r-2 #2
    ~ shared by r-1 #1, r-2 #2

    > r-2's lease ends
    ~ shared by r-1 #1, r-2 #2 (stale)

    > r-1 upgrades
    = upgraded #3
    ! lock:reclaimed r-2 #2
    ! lock:acquired r-1 #3
    - r-2 #2: reclaimed by r-1
    ~ r-1 #3
  `;
});

describe('the queue', () => {
  story('a higher priority goes first, and equals in order of arrival', aLock)`
    > a acquires
    = acquired #1
    ! lock:acquired a #1
    ~ a #1

    > b acquires
    = queued at 1: a #1 since 0s
    ! lock:queued b at 1
    ~ a #1, then b

    > c acquires, priority 5
    = queued at 1: a #1 since 0s
    ! lock:queued c at 1
    ~ a #1, then b, c (5)

    > d acquires, priority 5
    = queued at 2: a #1 since 0s
    ! lock:queued d at 2
    ~ a #1, then b, c (5), d (5)

    > e acquires, priority -1
    = queued at 4: a #1 since 0s
    ! lock:queued e at 4
    ~ a #1, then b, c (5), d (5), e (-1)

    > a releases
    = released
    ! lock:released a #1
    ! lock:acquired c #2
    + c: acquired #2
    ~ c #2, then b, d (5), e (-1)

    > c releases
    = released
    ! lock:released c #2
    ! lock:acquired d #3
    + d: acquired #3
    ~ d #3, then b, e (-1)

    > d releases
    = released
    ! lock:released d #3
    ! lock:acquired b #4
    + b: acquired #4
    ~ b #4, then e (-1)

    > b releases
    = released
    ! lock:released b #4
    ! lock:acquired e #5
    + e: acquired #5
    ~ e #5
  `;

  story('being passed ages a request: after eight that went past it, it is next', aLock)`
    > a acquires
    = acquired #1
    ! lock:acquired a #1
    ~ a #1

    > patient acquires
    = queued at 1: a #1 since 0s
    ! lock:queued patient at 1
    ~ a #1, then patient

    > b1 acquires, priority 9
    = queued at 1: a #1 since 0s
    ! lock:queued b1 at 1
    ~ a #1, then patient, b1 (9)

    > b2 acquires, priority 9
    = queued at 2: a #1 since 0s
    ! lock:queued b2 at 2
    ~ a #1, then patient, b1 (9), b2 (9)

    > b3 acquires, priority 9
    = queued at 3: a #1 since 0s
    ! lock:queued b3 at 3
    ~ a #1, then patient, b1 (9), b2 (9), b3 (9)

    > b4 acquires, priority 9
    = queued at 4: a #1 since 0s
    ! lock:queued b4 at 4
    ~ a #1, then patient, b1 (9), b2 (9), b3 (9), b4 (9)

    > b5 acquires, priority 9
    = queued at 5: a #1 since 0s
    ! lock:queued b5 at 5
    ~ a #1, then patient, b1 (9), b2 (9), b3 (9), b4 (9), b5 (9)

    > b6 acquires, priority 9
    = queued at 6: a #1 since 0s
    ! lock:queued b6 at 6
    ~ a #1, then patient, b1 (9), b2 (9), b3 (9), b4 (9), b5 (9), b6 (9)

    > b7 acquires, priority 9
    = queued at 7: a #1 since 0s
    ! lock:queued b7 at 7
    ~ a #1, then patient, b1 (9), b2 (9), b3 (9), b4 (9), b5 (9), b6 (9), b7 (9)

    > b8 acquires, priority 9
    = queued at 8: a #1 since 0s
    ! lock:queued b8 at 8
    ~ a #1, then patient, b1 (9), b2 (9), b3 (9), b4 (9), b5 (9), b6 (9), b7 (9), b8 (9)

    > b9 acquires, priority 9
    = queued at 9: a #1 since 0s
    ! lock:queued b9 at 9
    ~ a #1, then patient, b1 (9), b2 (9), b3 (9), b4 (9), b5 (9), b6 (9), b7 (9), b8 (9), b9 (9)

    > a releases
    = released
    ! lock:released a #1
    ! lock:acquired b1 #2
    + b1: acquired #2
    ~ b1 #2, then patient, b2 (9), b3 (9), b4 (9), b5 (9), b6 (9), b7 (9), b8 (9), b9 (9)

    > b1 releases
    = released
    ! lock:released b1 #2
    ! lock:acquired b2 #3
    + b2: acquired #3
    ~ b2 #3, then patient, b3 (9), b4 (9), b5 (9), b6 (9), b7 (9), b8 (9), b9 (9)

    > b2 releases
    = released
    ! lock:released b2 #3
    ! lock:acquired b3 #4
    + b3: acquired #4
    ~ b3 #4, then patient, b4 (9), b5 (9), b6 (9), b7 (9), b8 (9), b9 (9)

    > b3 releases
    = released
    ! lock:released b3 #4
    ! lock:acquired b4 #5
    + b4: acquired #5
    ~ b4 #5, then patient, b5 (9), b6 (9), b7 (9), b8 (9), b9 (9)

    > b4 releases
    = released
    ! lock:released b4 #5
    ! lock:acquired b5 #6
    + b5: acquired #6
    ~ b5 #6, then patient, b6 (9), b7 (9), b8 (9), b9 (9)

    > b5 releases
    = released
    ! lock:released b5 #6
    ! lock:acquired b6 #7
    + b6: acquired #7
    ~ b6 #7, then patient, b7 (9), b8 (9), b9 (9)

    > b6 releases
    = released
    ! lock:released b6 #7
    ! lock:acquired b7 #8
    + b7: acquired #8
    ~ b7 #8, then patient, b8 (9), b9 (9)

    > b7 releases
    = released
    ! lock:released b7 #8
    ! lock:acquired b8 #9
    + b8: acquired #9
    ~ b8 #9, then patient, b9 (9)

    > b8 releases
    = released
    ! lock:released b8 #9
    ! lock:acquired patient #10
    + patient: acquired #10
    ~ patient #10, then b9 (9)

    > patient releases
    = released
    ! lock:released patient #10
    ! lock:acquired b9 #11
    + b9: acquired #11
    ~ b9 #11
  `;

  story('a request that is given up leaves no trace', aLock)`
    > a acquires
    = acquired #1
    ! lock:acquired a #1
    ~ a #1

    > b acquires
    = queued at 1: a #1 since 0s
    ! lock:queued b at 1
    ~ a #1, then b

    > b gives up
    = cancelled
    ~ a #1

    > a releases
    = released
    ! lock:released a #1
    ~ free
  `;

  story('giving up lets those in who waited only for its turn', aLock)`
    > r-1 acquires shared
    = acquired #1
    ! lock:acquired r-1 #1
    ~ shared by r-1 #1

    > w acquires
    = queued at 1: r-1 #1 since 0s
    ! lock:queued w at 1
    ~ shared by r-1 #1, then w

    > r-2 acquires shared
    = queued at 2: r-1 #1 since 0s
    ! lock:queued r-2 at 2
    ~ shared by r-1 #1, then w, r-2 shared

    > w gives up
    = cancelled
    ! lock:acquired r-2 #2
    + r-2: acquired #2
    ~ shared by r-1 #1, r-2 #2
  `;

  story('a cancel that comes after the grant gives the grant back', aLock)`
    > a acquires
    = acquired #1
    ! lock:acquired a #1
    ~ a #1

    > b acquires
    = queued at 1: a #1 since 0s
    ! lock:queued b at 1
    ~ a #1, then b

    > c acquires
    = queued at 2: a #1 since 0s
    ! lock:queued c at 2
    ~ a #1, then b, c

    > a releases
    = released
    ! lock:released a #1
    ! lock:acquired b #2
    + b: acquired #2
    ~ b #2, then c

    > b gives up
    = cancelled, and given back
    ! lock:released b #2
    ! lock:acquired c #3
    + c: acquired #3
    ~ c #3
  `;

  story('a cancel that comes after the upgrade makes a reader of the writer again', aLock)`
    > r-1 acquires shared
    = acquired #1
    ! lock:acquired r-1 #1
    ~ shared by r-1 #1

    > r-2 acquires shared
    = acquired #2
    ! lock:acquired r-2 #2
    ~ shared by r-1 #1, r-2 #2

    > r-3 acquires shared
    = acquired #3
    ! lock:acquired r-3 #3
    ~ shared by r-1 #1, r-2 #2, r-3 #3

    > r-1 upgrades
    = queued at 1: r-2 #2 since 0s, r-3 #3 since 0s
    ! lock:queued r-1 at 1
    ~ shared by r-1 #1, r-2 #2, r-3 #3, then r-1 upgrades

    > r-2 releases
    = released
    ! lock:released r-2 #2
    ~ shared by r-1 #1, r-3 #3, then r-1 upgrades

    > r-3 releases
    = released
    ! lock:released r-3 #3
    ! lock:acquired r-1 #4
    + r-1: upgraded #4
    ~ r-1 #4

    > w acquires
    = queued at 1: r-1 #4 since 0s
    ! lock:queued w at 1
    ~ r-1 #4, then w

    > r-1 gives up
    = cancelled, and given back
    ! lock:downgraded r-1 #4
    ~ shared by r-1 #4, then w

    > r-1 releases
    = released
    ! lock:released r-1 #4
    ! lock:acquired w #5
    + w: acquired #5
    ~ w #5
  `;

  story('a request that is sent again, because the answer got lost, gets the first answer', aLock)`
    > a acquires
    = acquired #1
    ! lock:acquired a #1
    ~ a #1

    > a asks again
    = acquired #1
    ~ nothing changes

    > b acquires
    = queued at 1: a #1 since 0s
    ! lock:queued b at 1
    ~ a #1, then b

    > b asks again
    = queued at 1: a #1 since 0s
    ~ nothing changes

    > a releases
    = released
    ! lock:released a #1
    ! lock:acquired b #2
    + b: acquired #2
    ~ b #2

    > b asks again
    = acquired #2
    ~ nothing changes

    > b's lease ends
    ~ b #2 (stale)

    > b asks again
    = lost
    ~ nothing changes
  `;

  story('two requests of one holder do not wait for each other', aLock)`
    > a acquires
    = acquired #1
    ! lock:acquired a #1
    ~ a #1

    > b acquires
    = queued at 1: a #1 since 0s
    ! lock:queued b at 1
    ~ a #1, then b

    > b acquires
    = queued at 2: a #1 since 0s
    ! lock:queued b at 2
    ~ a #1, then b, b

    > a releases
    = released
    ! lock:released a #1
    ! lock:acquired b #2
    + b: acquired #2
    + b: extended #2
    ~ b #2
  `;

  story('nor does one that waits to read, and then to write', aLock)`
    > a acquires
    = acquired #1
    ! lock:acquired a #1
    ~ a #1

    > b acquires shared
    = queued at 1: a #1 since 0s
    ! lock:queued b at 1
    ~ a #1, then b shared

    > b acquires
    = queued at 2: a #1 since 0s
    ! lock:queued b at 2
    ~ a #1, then b shared, b

    > a releases
    = released
    ! lock:released a #1
    ! lock:acquired b #2
    ! lock:acquired b #3
    + b: acquired #2
    + b: upgraded #3
    ~ b #3
  `;

  story('the victim of a deadlock gets the whole cycle, and the others move on', aLock)`
    > a acquires shared
    = acquired #1
    ! lock:acquired a #1
    ~ shared by a #1

    > b acquires
    = queued at 1: a #1 since 0s
    ! lock:queued b at 1
    ~ shared by a #1, then b

    > c acquires shared
    = queued at 2: a #1 since 0s
    ! lock:queued c at 2
    ~ shared by a #1, then b, c shared

    > b is the victim of a deadlock with a
    = settled
    ! lock:deadlock b b → a → b
    ! lock:acquired c #2
    + b: deadlock: b → a → b
    + c: acquired #2
    ~ shared by a #1, c #2

    > b is the victim of a deadlock with a
    = unchanged
    ~ nothing changes
  `;
});
