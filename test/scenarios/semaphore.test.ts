/** SPEC 2, row by row and sentence by sentence, as far as the bare machine can show it. */
import { afterAll, describe } from 'vitest';
import { aSemaphore, stopServer } from './settings.ts';
import { story } from './story.ts';

afterAll(stopServer);

describe('asking for slots', () => {
  story('there is room: the lowest free slots are acquired', aSemaphore(4))`
    > a tries 2
    = acquired #1, slots 0 1
    ! semaphore:acquired a #1 ×2
    ~ [a#1 a#1 . .]

    > b tries 1
    = acquired #2, slot 2
    ! semaphore:acquired b #2 ×1
    ~ [a#1 a#1 b#2 .]

    > a releases
    = released
    ! semaphore:released a #1 ×2
    ~ [. . b#2 .]

    > c tries 3
    = acquired #3, slots 0 1 3
    ! semaphore:acquired c #3 ×3
    ~ [c#3 c#3 b#2 c#3]
  `;

  story('a holder that asks for no more than it has already holds it', aSemaphore(4))`
    > a acquires 2
    = acquired #1, slots 0 1
    ! semaphore:acquired a #1 ×2
    ~ [a#1 a#1 . .]

    > a acquires 2
    = already-held #1, slots 0 1
    ~ nothing changes

    > a acquires 1
    = already-held #1, slots 0 1
    ~ nothing changes

    # An inner re-entry is not counted: one release is enough.
    > a releases
    = released
    ! semaphore:released a #1 ×2
    ~ [. . . .]
  `;

  story('a holder that wants more grows: same token, the slots it had and the lowest free ones', aSemaphore(5))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 . . . .]

    > b acquires 1
    = acquired #2, slot 1
    ! semaphore:acquired b #2 ×1
    ~ [a#1 b#2 . . .]

    > c acquires 1
    = acquired #3, slot 2
    ! semaphore:acquired c #3 ×1
    ~ [a#1 b#2 c#3 . .]

    > b releases
    = released
    ! semaphore:released b #2 ×1
    ~ [a#1 . c#3 . .]

    > a tries 3
    = increased #1, slots 0 1 3
    ! semaphore:acquired a #1 ×3
    ~ [a#1 a#1 c#3 a#1 .]

    > a releases
    = released
    ! semaphore:released a #1 ×3
    ~ [. . c#3 . .]
  `;

  story('weight is the total wanted, not an addition', aSemaphore(3))`
    > a acquires 2
    = acquired #1, slots 0 1
    ! semaphore:acquired a #1 ×2
    ~ [a#1 a#1 .]

    > a tries 3
    = increased #1, slots 0 1 2
    ! semaphore:acquired a #1 ×3
    ~ [a#1 a#1 a#1]

    > b tries 1
    = full, 0 free: a #1 since 0s
    ! semaphore:denied b ×1 free 0
    ~ nothing changes
  `;

  story('there is room only after stale holders are reclaimed: every one of them', aSemaphore(4))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 . . .]

    > b acquires 1
    = acquired #2, slot 1
    ! semaphore:acquired b #2 ×1
    ~ [a#1 b#2 . .]

    > c acquires 1
    = acquired #3, slot 2
    ! semaphore:acquired c #3 ×1
    ~ [a#1 b#2 c#3 .]

    > a's lease ends
    ~ [a#1? b#2 c#3 .]

    > b's lease ends
    ~ [a#1? b#2? c#3 .]

    > d tries 2
    = reclaimed #4, slots 0 1
    ! semaphore:reclaimed a #1 ×1
    ! semaphore:reclaimed b #2 ×1
    ! semaphore:acquired d #4 ×2
    - a #1: reclaimed by d
    - b #2: reclaimed by d
    ~ [d#4 d#4 c#3 .]
  `;

  story('while there is room as it is, a stale holder is left alone', aSemaphore(3))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 . .]

    > a's lease ends
    ~ [a#1? . .]

    > b tries 1
    = acquired #2, slot 1
    ! semaphore:acquired b #2 ×1
    ~ [a#1? b#2 .]

    > c tries 2
    = reclaimed #3, slots 0 2
    ! semaphore:reclaimed a #1 ×1
    ! semaphore:acquired c #3 ×2
    - a #1: reclaimed by c
    ~ [c#3 b#2 c#3]
  `;

  story('no room: a try learns how many are free and who has the others, and changes nothing', aSemaphore(3))`
    > a acquires 2, because "building"
    = acquired #1, slots 0 1
    ! semaphore:acquired a #1 ×2
    ~ [a#1 a#1 .]

    > 10s pass
    ~ [a#1 a#1 .]

    > b tries 2
    = full, 1 free: a #1 since 0s, because "building"
    ! semaphore:denied b ×2 free 1
    ~ nothing changes

    > b acquires 2
    = queued at 1, 1 free
    ! semaphore:queued b ×2 at 1
    ~ [a#1 a#1 .], then b ×2
  `;

  story('stale holders are not touched by a try that is refused even so', aSemaphore(4))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 . . .]

    > b acquires 3
    = acquired #2, slots 1 2 3
    ! semaphore:acquired b #2 ×3
    ~ [a#1 b#2 b#2 b#2]

    > a's lease ends
    ~ [a#1? b#2 b#2 b#2]

    > c tries 2
    = full, 0 free: a #1 (stale) since 0s, b #2 since 0s
    ! semaphore:denied c ×2 free 0
    ~ nothing changes

    > b renews
    = refreshed #2
    ~ nothing changes
  `;

  story('a holder that cannot grow keeps what it had and is refused', aSemaphore(3))`
    > a acquires 2
    = acquired #1, slots 0 1
    ! semaphore:acquired a #1 ×2
    ~ [a#1 a#1 .]

    > b acquires 1
    = acquired #2, slot 2
    ! semaphore:acquired b #2 ×1
    ~ [a#1 a#1 b#2]

    > a tries 3
    = full, 0 free: a #1 since 0s, b #2 since 0s
    ! semaphore:denied a ×3 free 0
    ~ nothing changes

    > a renews
    = refreshed #1
    ~ nothing changes

    > b releases
    = released
    ! semaphore:released b #2 ×1
    ~ [a#1 a#1 .]

    > a tries 3
    = increased #1, slots 0 1 2
    ! semaphore:acquired a #1 ×3
    ~ [a#1 a#1 a#1]
  `;

  story('or it is queued for the rest', aSemaphore(3))`
    > a acquires 2
    = acquired #1, slots 0 1
    ! semaphore:acquired a #1 ×2
    ~ [a#1 a#1 .]

    > b acquires 1
    = acquired #2, slot 2
    ! semaphore:acquired b #2 ×1
    ~ [a#1 a#1 b#2]

    > a acquires 3
    = queued at 1, 0 free
    ! semaphore:queued a ×3 at 1
    ~ [a#1 a#1 b#2], then a ×3 in all

    > b releases
    = released
    ! semaphore:released b #2 ×1
    ! semaphore:acquired a #1 ×3
    + a: increased #1, slots 0 1 2
    ~ [a#1 a#1 a#1]

    > a releases
    = released
    ! semaphore:released a #1 ×3
    ~ [. . .]
  `;

  story('what can never be had is refused at once', aSemaphore(4))`
    > a tries 0
    = impossible: a weight is a whole number from 1 up, not 0
    ~ nothing changes

    > a tries -1
    = impossible: a weight is a whole number from 1 up, not -1
    ~ nothing changes

    > a tries 1.5
    = impossible: a weight is a whole number from 1 up, not 1.5
    ~ nothing changes

    > a tries NaN
    = impossible: a weight is a whole number from 1 up, not NaN
    ~ nothing changes

    > a tries Infinity
    = impossible: a weight is a whole number from 1 up, not Infinity
    ~ nothing changes

    > a tries 5
    = impossible: a weight of 5 is more than the capacity of 4
    ~ nothing changes

    > a acquires 5
    = impossible: a weight of 5 is more than the capacity of 4
    ~ nothing changes

    > a forces 5
    = impossible: a weight of 5 is more than the capacity of 4
    ~ nothing changes

    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 . . .]

    > a acquires 5
    = impossible: a weight of 5 is more than the capacity of 4
    ~ nothing changes
  `;

  story('two callers that name different capacities are refused with both', aSemaphore(4))`
    > a tries 1 of 4
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 . . .]

    > b tries 1 of 5
    = capacity-mismatch: it is 4, not 5
    ~ nothing changes

    > b tries 1
    = acquired #2, slot 1
    ! semaphore:acquired b #2 ×1
    ~ [a#1 b#2 . .]

    > c tries 1 of 0
    = impossible: a capacity is a whole number from 1 up, not 0
    ~ nothing changes

    > c tries 1 of 2.5
    = impossible: a capacity is a whole number from 1 up, not 2.5
    ~ nothing changes
  `;
});

describe('letting go of slots', () => {
  story('released slots go, in the same step, to those who waited', aSemaphore(3))`
    > a acquires 3
    = acquired #1, slots 0 1 2
    ! semaphore:acquired a #1 ×3
    ~ [a#1 a#1 a#1]

    > b acquires 1
    = queued at 1, 0 free
    ! semaphore:queued b ×1 at 1
    ~ [a#1 a#1 a#1], then b ×1

    > c acquires 1
    = queued at 2, 0 free
    ! semaphore:queued c ×1 at 2
    ~ [a#1 a#1 a#1], then b ×1, c ×1

    > d acquires 2
    = queued at 3, 0 free
    ! semaphore:queued d ×2 at 3
    ~ [a#1 a#1 a#1], then b ×1, c ×1, d ×2

    > a releases
    = released
    ! semaphore:released a #1 ×3
    ! semaphore:acquired b #2 ×1
    ! semaphore:acquired c #3 ×1
    + b: acquired #2, slot 0
    + c: acquired #3, slot 1
    ~ [b#2 c#3 .], then d ×2

    > b releases
    = released
    ! semaphore:released b #2 ×1
    ! semaphore:acquired d #4 ×2
    + d: acquired #4, slots 0 2
    ~ [d#4 c#3 d#4]

    > c releases
    = released
    ! semaphore:released c #3 ×1
    ~ [d#4 . d#4]
  `;

  story('who holds nothing releases nothing', aSemaphore(2))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 .]

    > b releases
    = not-holder
    ~ nothing changes

    > a releases
    = released
    ! semaphore:released a #1 ×1
    ~ [. .]

    > a releases
    = not-holder
    ~ nothing changes
  `;

  story("a client that slept past its lease cannot release the next holder's slots", aSemaphore(2))`
    > a acquires 2
    = acquired #1, slots 0 1
    ! semaphore:acquired a #1 ×2
    ~ [a#1 a#1]

    > a's lease ends
    ~ [a#1? a#1?]

    > a starts again
    ~ [a#1? a#1?]

    > a acquires 2
    = reclaimed #2, slots 0 1
    ! semaphore:reclaimed a #1 ×2
    ! semaphore:acquired a #2 ×2
    - a #1: reclaimed by a
    ~ [a#2 a#2]

    > a releases #1
    = not-holder
    ~ nothing changes

    > a renews #1
    = not-holder
    ~ nothing changes

    > a releases
    = released
    ! semaphore:released a #2 ×2
    ~ [. .]
  `;

  story('a slot number stays with its holder, whatever other holders do', aSemaphore(4))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 . . .]

    > b acquires 1
    = acquired #2, slot 1
    ! semaphore:acquired b #2 ×1
    ~ [a#1 b#2 . .]

    > c acquires 1
    = acquired #3, slot 2
    ! semaphore:acquired c #3 ×1
    ~ [a#1 b#2 c#3 .]

    > a releases
    = released
    ! semaphore:released a #1 ×1
    ~ [. b#2 c#3 .]

    > c acquires 2
    = increased #3, slots 2 0
    ! semaphore:acquired c #3 ×2
    ~ [c#3 b#2 c#3 .]

    > b releases
    = released
    ! semaphore:released b #2 ×1
    ~ [c#3 . c#3 .]

    > d acquires 2
    = acquired #4, slots 1 3
    ! semaphore:acquired d #4 ×2
    ~ [c#3 d#4 c#3 d#4]
  `;
});

describe('keeping slots', () => {
  story('a stale holder cannot revive', aSemaphore(2))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 .]

    > a renews
    = refreshed #1
    ~ nothing changes

    > a's lease ends
    ~ [a#1? .]

    > a renews
    = lost
    ~ nothing changes

    > a extends
    = lost
    ~ nothing changes

    > a acquires 2
    = lost
    ~ nothing changes

    > maintenance
    = maintained: a reclaimed
    ! semaphore:reclaimed a #1 ×1
    - a #1: reclaimed
    ~ [. .]

    > a renews
    = not-holder
    ~ nothing changes
  `;

  story('a lease can be extended while holding', aSemaphore(1))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1]

    > a extends
    = refreshed #1
    ~ [a#1]

    > a's lease ends
    ~ [a#1]

    > a renews
    = refreshed #1
    ~ nothing changes

    > a's extended lease ends
    ~ [a#1?]

    > b tries 1
    = reclaimed #2, slot 0
    ! semaphore:reclaimed a #1 ×1
    ! semaphore:acquired b #2 ×1
    - a #1: reclaimed by b
    ~ [b#2]
  `;

  story('a hold past its maxHold is stale although it renews', aSemaphore(1))`
    > a acquires 1, at most 60s
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1]

    > a renews
    = refreshed #1
    ~ nothing changes

    > a's time is up
    ~ [a#1?]

    > a renews
    = lost
    ~ nothing changes

    > b tries 1
    = reclaimed #2, slot 0
    ! semaphore:reclaimed a #1 ×1
    ! semaphore:acquired b #2 ×1
    - a #1: reclaimed by b
    ~ [b#2]
  `;

  story('every stale holder is warned of, each once', aSemaphore(3))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 . .]

    > b acquires 1
    = acquired #2, slot 1
    ! semaphore:acquired b #2 ×1
    ~ [a#1 b#2 .]

    > c acquires 1
    = acquired #3, slot 2
    ! semaphore:acquired c #3 ×1
    ~ [a#1 b#2 c#3]

    > a's lease ends
    ~ [a#1? b#2 c#3]

    > b's lease ends
    ~ [a#1? b#2? c#3]

    > tick
    = unchanged
    ! semaphore:stale a #1 ×1
    ! semaphore:stale b #2 ×1
    ~ [a#1? b#2? c#3]

    > tick
    = unchanged
    ~ nothing changes

    > c's lease ends
    ~ [a#1? b#2? c#3?]

    > tick
    = unchanged
    ! semaphore:stale c #3 ×1
    ~ [a#1? b#2? c#3?]
  `;

  story('maintenance removes every stale holder, and lets those in who wait', aSemaphore(3))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 . .]

    > b acquires 1
    = acquired #2, slot 1
    ! semaphore:acquired b #2 ×1
    ~ [a#1 b#2 .]

    > c acquires 1
    = acquired #3, slot 2
    ! semaphore:acquired c #3 ×1
    ~ [a#1 b#2 c#3]

    > d acquires 1
    = queued at 1, 0 free
    ! semaphore:queued d ×1 at 1
    ~ [a#1 b#2 c#3], then d ×1

    > e acquires 2
    = queued at 2, 0 free
    ! semaphore:queued e ×2 at 2
    ~ [a#1 b#2 c#3], then d ×1, e ×2

    > a's lease ends
    ~ [a#1? b#2 c#3], then d ×1, e ×2

    > b's lease ends
    ~ [a#1? b#2? c#3], then d ×1, e ×2

    > maintenance
    = maintained: a, b reclaimed
    ! semaphore:reclaimed a #1 ×1
    ! semaphore:reclaimed b #2 ×1
    ! semaphore:acquired d #4 ×1
    + d: acquired #4, slot 0
    - a #1: reclaimed
    - b #2: reclaimed
    ~ [d#4 . c#3], then e ×2

    > maintenance
    = maintained: nobody reclaimed
    ~ nothing changes
  `;

  story('where a person must decide, stale holders stay, except for one who steals', aSemaphore(2))`
    > stale holds wait for a person
    = configured
    ~ [. .]

    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 .]

    > b acquires 1
    = acquired #2, slot 1
    ! semaphore:acquired b #2 ×1
    ~ [a#1 b#2]

    > a's lease ends
    ~ [a#1? b#2]

    > b's lease ends
    ~ [a#1? b#2?]

    > c tries 1
    = full, 0 free: a #1 (stale) since 0s, b #2 (stale) since 0s
    ! semaphore:denied c ×1 free 0
    ~ nothing changes

    > maintenance
    = maintained: nobody reclaimed
    ~ nothing changes

    > c steals 1
    = reclaimed #3, slot 0
    ! semaphore:reclaimed a #1 ×1
    ! semaphore:reclaimed b #2 ×1
    ! semaphore:acquired c #3 ×1
    - a #1: reclaimed by c
    - b #2: reclaimed by c
    ~ [c#3 .]
  `;

  story('once stale holders are reclaimed again, those who wait get theirs', aSemaphore(1))`
    > stale holds wait for a person
    = configured
    ~ [.]

    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1]

    > b acquires 1
    = queued at 1, 0 free
    ! semaphore:queued b ×1 at 1
    ~ [a#1], then b ×1

    > a's lease ends
    ~ [a#1?], then b ×1

    > settle
    = settled
    ~ nothing changes

    > stale holds are reclaimed
    = configured
    ! semaphore:reclaimed a #1 ×1
    ! semaphore:acquired b #2 ×1
    + b: reclaimed #2, slot 0
    - a #1: reclaimed by b
    ~ [b#2]
  `;

  story('a holder that died and started again does not hold by its past', aSemaphore(3))`
    > a acquires 2
    = acquired #1, slots 0 1
    ! semaphore:acquired a #1 ×2
    ~ [a#1 a#1 .]

    > a's lease ends
    ~ [a#1? a#1? .]

    > a starts again
    ~ [a#1? a#1? .]

    > a tries 2
    = reclaimed #2, slots 0 1
    ! semaphore:reclaimed a #1 ×2
    ! semaphore:acquired a #2 ×2
    - a #1: reclaimed by a
    ~ [a#2 a#2 .]

    > a renews
    = refreshed #2
    ~ nothing changes
  `;
});

describe('the queue', () => {
  story('a heavy request at the head is not starved by light ones', aSemaphore(3))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 . .]

    > b acquires 1
    = acquired #2, slot 1
    ! semaphore:acquired b #2 ×1
    ~ [a#1 b#2 .]

    > heavy acquires 3
    = queued at 1, 1 free
    ! semaphore:queued heavy ×3 at 1
    ~ [a#1 b#2 .], then heavy ×3

    # One slot is free, but it is waited for.
    > c tries 1
    = full, 1 free: a #1 since 0s, b #2 since 0s
    ! semaphore:denied c ×1 free 1
    ~ nothing changes

    > c acquires 1
    = queued at 2, 1 free
    ! semaphore:queued c ×1 at 2
    ~ [a#1 b#2 .], then heavy ×3, c ×1

    > a releases
    = released
    ! semaphore:released a #1 ×1
    ~ [. b#2 .], then heavy ×3, c ×1

    > b releases
    = released
    ! semaphore:released b #2 ×1
    ! semaphore:acquired heavy #3 ×3
    + heavy: acquired #3, slots 0 1 2
    ~ [heavy#3 heavy#3 heavy#3], then c ×1

    > heavy releases
    = released
    ! semaphore:released heavy #3 ×3
    ! semaphore:acquired c #4 ×1
    + c: acquired #4, slot 0
    ~ [c#4 . .]
  `;

  story('a higher priority decides who the head is', aSemaphore(3))`
    > a acquires 2
    = acquired #1, slots 0 1
    ! semaphore:acquired a #1 ×2
    ~ [a#1 a#1 .]

    > heavy acquires 3
    = queued at 1, 1 free
    ! semaphore:queued heavy ×3 at 1
    ~ [a#1 a#1 .], then heavy ×3

    > light acquires 1, priority 5
    = acquired #2, slot 2
    ! semaphore:acquired light #2 ×1
    ~ [a#1 a#1 light#2], then heavy ×3

    > heavier acquires 3, priority 9
    = queued at 1, 0 free
    ! semaphore:queued heavier ×3 at 1
    ~ [a#1 a#1 light#2], then heavy ×3, heavier ×3 (9)

    > light-2 acquires 1, priority 5
    = queued at 2, 0 free
    ! semaphore:queued light-2 ×1 at 2
    ~ [a#1 a#1 light#2], then heavy ×3, heavier ×3 (9), light-2 ×1 (5)

    > a releases
    = released
    ! semaphore:released a #1 ×2
    ~ [. . light#2], then heavy ×3, heavier ×3 (9), light-2 ×1 (5)

    > light releases
    = released
    ! semaphore:released light #2 ×1
    ! semaphore:acquired heavier #3 ×3
    + heavier: acquired #3, slots 0 1 2
    ~ [heavier#3 heavier#3 heavier#3], then heavy ×3, light-2 ×1 (5)

    > heavier releases
    = released
    ! semaphore:released heavier #3 ×3
    ! semaphore:acquired light-2 #4 ×1
    + light-2: acquired #4, slot 0
    ~ [light-2#4 . .], then heavy ×3
  `;

  story('being passed ages a heavy request, too', aSemaphore(2))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 .]

    > heavy acquires 2
    = queued at 1, 1 free
    ! semaphore:queued heavy ×2 at 1
    ~ [a#1 .], then heavy ×2

    > l1 acquires 1, priority 5
    = acquired #2, slot 1
    ! semaphore:acquired l1 #2 ×1
    ~ [a#1 l1#2], then heavy ×2

    > l1 releases
    = released
    ! semaphore:released l1 #2 ×1
    ~ [a#1 .], then heavy ×2

    > l2 acquires 1, priority 5
    = acquired #3, slot 1
    ! semaphore:acquired l2 #3 ×1
    ~ [a#1 l2#3], then heavy ×2

    > l2 releases
    = released
    ! semaphore:released l2 #3 ×1
    ~ [a#1 .], then heavy ×2

    > l3 acquires 1, priority 5
    = acquired #4, slot 1
    ! semaphore:acquired l3 #4 ×1
    ~ [a#1 l3#4], then heavy ×2

    > l3 releases
    = released
    ! semaphore:released l3 #4 ×1
    ~ [a#1 .], then heavy ×2

    > l4 acquires 1, priority 5
    = acquired #5, slot 1
    ! semaphore:acquired l4 #5 ×1
    ~ [a#1 l4#5], then heavy ×2

    > l4 releases
    = released
    ! semaphore:released l4 #5 ×1
    ~ [a#1 .], then heavy ×2

    > l5 acquires 1, priority 5
    = acquired #6, slot 1
    ! semaphore:acquired l5 #6 ×1
    ~ [a#1 l5#6], then heavy ×2

    > l5 releases
    = released
    ! semaphore:released l5 #6 ×1
    ~ [a#1 .], then heavy ×2

    > l6 acquires 1, priority 5
    = acquired #7, slot 1
    ! semaphore:acquired l6 #7 ×1
    ~ [a#1 l6#7], then heavy ×2

    > l6 releases
    = released
    ! semaphore:released l6 #7 ×1
    ~ [a#1 .], then heavy ×2

    > l7 acquires 1, priority 5
    = acquired #8, slot 1
    ! semaphore:acquired l7 #8 ×1
    ~ [a#1 l7#8], then heavy ×2

    > l7 releases
    = released
    ! semaphore:released l7 #8 ×1
    ~ [a#1 .], then heavy ×2

    > l8 acquires 1, priority 5
    = acquired #9, slot 1
    ! semaphore:acquired l8 #9 ×1
    ~ [a#1 l8#9], then heavy ×2

    > l8 releases
    = released
    ! semaphore:released l8 #9 ×1
    ~ [a#1 .], then heavy ×2

    # Eight went past it: that is enough.
    > l9 acquires 1, priority 5
    = queued at 2, 1 free
    ! semaphore:queued l9 ×1 at 2
    ~ [a#1 .], then heavy ×2, l9 ×1 (5)

    > a releases
    = released
    ! semaphore:released a #1 ×1
    ! semaphore:acquired heavy #10 ×2
    + heavy: acquired #10, slots 0 1
    ~ [heavy#10 heavy#10], then l9 ×1 (5)
  `;

  story('growth does not pass those who wait', aSemaphore(4))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 . . .]

    > b acquires 2
    = acquired #2, slots 1 2
    ! semaphore:acquired b #2 ×2
    ~ [a#1 b#2 b#2 .]

    > c acquires 2
    = queued at 1, 1 free
    ! semaphore:queued c ×2 at 1
    ~ [a#1 b#2 b#2 .], then c ×2

    > a tries 2
    = full, 1 free: a #1 since 0s, b #2 since 0s
    ! semaphore:denied a ×2 free 1
    ~ nothing changes

    > a acquires 2
    = queued at 2, 1 free
    ! semaphore:queued a ×2 at 2
    ~ [a#1 b#2 b#2 .], then c ×2, a ×2 in all

    > b releases
    = released
    ! semaphore:released b #2 ×2
    ! semaphore:acquired c #3 ×2
    ! semaphore:acquired a #1 ×2
    + c: acquired #3, slots 1 2
    + a: increased #1, slots 0 3
    ~ [a#1 c#3 c#3 a#1]
  `;

  story('a waiting growth ends with its hold', aSemaphore(3))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 . .]

    > b acquires 2
    = acquired #2, slots 1 2
    ! semaphore:acquired b #2 ×2
    ~ [a#1 b#2 b#2]

    > a acquires 3
    = queued at 1, 0 free
    ! semaphore:queued a ×3 at 1
    ~ [a#1 b#2 b#2], then a ×3 in all

    > c acquires 1
    = queued at 2, 0 free
    ! semaphore:queued c ×1 at 2
    ~ [a#1 b#2 b#2], then a ×3 in all, c ×1

    > a releases
    = released
    ! semaphore:released a #1 ×1
    ! semaphore:acquired c #3 ×1
    + a: lost
    + c: acquired #3, slot 0
    ~ [c#3 b#2 b#2]
  `;

  story('also if the hold was lost', aSemaphore(3))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 . .]

    > b acquires 2
    = acquired #2, slots 1 2
    ! semaphore:acquired b #2 ×2
    ~ [a#1 b#2 b#2]

    > a acquires 3
    = queued at 1, 0 free
    ! semaphore:queued a ×3 at 1
    ~ [a#1 b#2 b#2], then a ×3 in all

    > a's lease ends
    ~ [a#1? b#2 b#2], then a ×3 in all

    > maintenance
    = maintained: a reclaimed
    ! semaphore:reclaimed a #1 ×1
    + a: lost
    - a #1: reclaimed
    ~ [. b#2 b#2]
  `;

  story('what stale holders leave goes to the queue before any newcomer', aSemaphore(2))`
    > a acquires 2
    = acquired #1, slots 0 1
    ! semaphore:acquired a #1 ×2
    ~ [a#1 a#1]

    > b acquires 1
    = queued at 1, 0 free
    ! semaphore:queued b ×1 at 1
    ~ [a#1 a#1], then b ×1

    > a's lease ends
    ~ [a#1? a#1?], then b ×1

    > c tries 2
    = full, 0 free: a #1 (stale) since 0s
    ! semaphore:denied c ×2 free 0
    ~ nothing changes

    > c acquires 2, priority 9
    = queued at 1, 1 free
    ! semaphore:reclaimed a #1 ×2
    ! semaphore:acquired b #2 ×1
    ! semaphore:queued c ×2 at 1
    + b: reclaimed #2, slot 0
    - a #1: reclaimed by b
    ~ [b#2 .], then c ×2 (9)

    > b releases
    = released
    ! semaphore:released b #2 ×1
    ! semaphore:acquired c #3 ×2
    + c: acquired #3, slots 0 1
    ~ [c#3 c#3]
  `;

  story('a newcomer has what those who wait leave over', aSemaphore(2))`
    > a acquires 2
    = acquired #1, slots 0 1
    ! semaphore:acquired a #1 ×2
    ~ [a#1 a#1]

    > b acquires 1
    = queued at 1, 0 free
    ! semaphore:queued b ×1 at 1
    ~ [a#1 a#1], then b ×1

    > a's lease ends
    ~ [a#1? a#1?], then b ×1

    > c tries 1
    = acquired #3, slot 1
    ! semaphore:reclaimed a #1 ×2
    ! semaphore:acquired b #2 ×1
    ! semaphore:acquired c #3 ×1
    + b: reclaimed #2, slot 0
    - a #1: reclaimed by b
    ~ [b#2 c#3]
  `;

  story('a waiter that died is never granted, and holds nobody up', aSemaphore(2))`
    > a acquires 2
    = acquired #1, slots 0 1
    ! semaphore:acquired a #1 ×2
    ~ [a#1 a#1]

    > b acquires 2
    = queued at 1, 0 free
    ! semaphore:queued b ×2 at 1
    ~ [a#1 a#1], then b ×2

    > c acquires 1
    = queued at 2, 0 free
    ! semaphore:queued c ×1 at 2
    ~ [a#1 a#1], then b ×2, c ×1

    > b's lease ends
    ~ [a#1 a#1], then b ×2, c ×1

    > a releases
    = released
    ! semaphore:released a #1 ×2
    ! semaphore:acquired c #2 ×1
    + c: acquired #2, slot 0
    ~ [c#2 .]
  `;

  story('a request that is given up leaves no trace, and the waiters behind it move on', aSemaphore(2))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 .]

    > b acquires 2
    = queued at 1, 1 free
    ! semaphore:queued b ×2 at 1
    ~ [a#1 .], then b ×2

    > c acquires 1
    = queued at 2, 1 free
    ! semaphore:queued c ×1 at 2
    ~ [a#1 .], then b ×2, c ×1

    > b gives up
    = cancelled
    ! semaphore:acquired c #2 ×1
    + c: acquired #2, slot 1
    ~ [a#1 c#2]
  `;

  story('a cancel that comes after the grant gives the grant back', aSemaphore(1))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1]

    > b acquires 1
    = queued at 1, 0 free
    ! semaphore:queued b ×1 at 1
    ~ [a#1], then b ×1

    > a releases
    = released
    ! semaphore:released a #1 ×1
    ! semaphore:acquired b #2 ×1
    + b: acquired #2, slot 0
    ~ [b#2]

    > b gives up
    = cancelled, and given back
    ! semaphore:released b #2 ×1
    ~ [.]
  `;

  story('a cancel that comes after the growth gives back what was added', aSemaphore(3))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 . .]

    > b acquires 2
    = acquired #2, slots 1 2
    ! semaphore:acquired b #2 ×2
    ~ [a#1 b#2 b#2]

    > a acquires 3
    = queued at 1, 0 free
    ! semaphore:queued a ×3 at 1
    ~ [a#1 b#2 b#2], then a ×3 in all

    > b releases
    = released
    ! semaphore:released b #2 ×2
    ! semaphore:acquired a #1 ×3
    + a: increased #1, slots 0 1 2
    ~ [a#1 a#1 a#1]

    > c acquires 1
    = queued at 1, 0 free
    ! semaphore:queued c ×1 at 1
    ~ [a#1 a#1 a#1], then c ×1

    > a gives up
    = cancelled, and given back
    ! semaphore:released a #1 ×2
    ! semaphore:acquired c #3 ×1
    + c: acquired #3, slot 1
    ~ [a#1 c#3 .]

    > a renews
    = refreshed #1
    ~ nothing changes
  `;

  story('a request that is sent again, because the answer got lost, gets the first answer', aSemaphore(2))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 .]

    > a asks again
    = acquired #1, slot 0
    ~ nothing changes

    > b acquires 2
    = queued at 1, 1 free
    ! semaphore:queued b ×2 at 1
    ~ [a#1 .], then b ×2

    > b asks again
    = queued at 1, 1 free
    ~ nothing changes

    > a releases
    = released
    ! semaphore:released a #1 ×1
    ! semaphore:acquired b #2 ×2
    + b: acquired #2, slots 0 1
    ~ [b#2 b#2]

    > b asks again
    = acquired #2, slots 0 1
    ~ nothing changes
  `;

  story('two requests of one holder do not wait for each other', aSemaphore(2))`
    > a acquires 2
    = acquired #1, slots 0 1
    ! semaphore:acquired a #1 ×2
    ~ [a#1 a#1]

    > b acquires 1
    = queued at 1, 0 free
    ! semaphore:queued b ×1 at 1
    ~ [a#1 a#1], then b ×1

    > b acquires 1
    = queued at 2, 0 free
    ! semaphore:queued b ×1 at 2
    ~ [a#1 a#1], then b ×1, b ×1

    > b acquires 2
    = queued at 3, 0 free
    ! semaphore:queued b ×2 at 3
    ~ [a#1 a#1], then b ×1, b ×1, b ×2

    > a releases
    = released
    ! semaphore:released a #1 ×2
    ! semaphore:acquired b #2 ×1
    ! semaphore:acquired b #2 ×2
    + b: acquired #2, slot 0
    + b: already-held #2, slot 0
    + b: increased #2, slots 0 1
    ~ [b#2 b#2]
  `;

  story('the victim of a deadlock gets the whole cycle, and the others move on', aSemaphore(2))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 .]

    > b acquires 2
    = queued at 1, 1 free
    ! semaphore:queued b ×2 at 1
    ~ [a#1 .], then b ×2

    > c acquires 1
    = queued at 2, 1 free
    ! semaphore:queued c ×1 at 2
    ~ [a#1 .], then b ×2, c ×1

    > b is the victim of a deadlock with a
    = settled
    ! semaphore:deadlock b ×2 b → a → b
    ! semaphore:acquired c #2 ×1
    + b: deadlock: b → a → b
    + c: acquired #2, slot 1
    ~ [a#1 c#2]
  `;
});

describe('changing the capacity', () => {
  story('more capacity lets those in who wait', aSemaphore(1))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1]

    > b acquires 1
    = queued at 1, 0 free
    ! semaphore:queued b ×1 at 1
    ~ [a#1], then b ×1

    > c acquires 1
    = queued at 2, 0 free
    ! semaphore:queued c ×1 at 2
    ~ [a#1], then b ×1, c ×1

    > resize to 3
    = resized to 3
    ! semaphore:resized capacity 3 from 1
    ! semaphore:acquired b #2 ×1
    ! semaphore:acquired c #3 ×1
    + b: acquired #2, slot 1
    + c: acquired #3, slot 2
    ~ [a#1 b#2 c#3]

    > resize to 3
    = resized to 3
    ~ nothing changes
  `;

  story('shrinking below what is in use takes effect as holders leave', aSemaphore(4))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 . . .]

    > b acquires 2
    = acquired #2, slots 1 2
    ! semaphore:acquired b #2 ×2
    ~ [a#1 b#2 b#2 .]

    > c acquires 1
    = acquired #3, slot 3
    ! semaphore:acquired c #3 ×1
    ~ [a#1 b#2 b#2 c#3]

    > resize to 2
    = resized to 2
    ! semaphore:resized capacity 2 from 4
    ~ [a#1 b#2] b#2 c#3

    > a tries 1
    = already-held #1, slot 0
    ~ nothing changes

    > d acquires 1
    = queued at 1, 0 free
    ! semaphore:queued d ×1 at 1
    ~ [a#1 b#2] b#2 c#3, then d ×1

    > a releases
    = released
    ! semaphore:released a #1 ×1
    ~ [. b#2] b#2 c#3, then d ×1

    > b releases
    = released
    ! semaphore:released b #2 ×2
    ! semaphore:acquired d #4 ×1
    + d: acquired #4, slot 0
    ~ [d#4 .] . c#3

    > c releases
    = released
    ! semaphore:released c #3 ×1
    ~ [d#4 .]

    > e tries 1
    = acquired #5, slot 1
    ! semaphore:acquired e #5 ×1
    ~ [d#4 e#5]
  `;

  story('new grants get slots below the new capacity', aSemaphore(4))`
    > a acquires 2
    = acquired #1, slots 0 1
    ! semaphore:acquired a #1 ×2
    ~ [a#1 a#1 . .]

    > b acquires 2
    = acquired #2, slots 2 3
    ! semaphore:acquired b #2 ×2
    ~ [a#1 a#1 b#2 b#2]

    > resize to 3
    = resized to 3
    ! semaphore:resized capacity 3 from 4
    ~ [a#1 a#1 b#2] b#2

    > a releases
    = released
    ! semaphore:released a #1 ×2
    ~ [. . b#2] b#2

    > c tries 1
    = acquired #3, slot 0
    ! semaphore:acquired c #3 ×1
    ~ [c#3 . b#2] b#2

    > d tries 1
    = full, 0 free: b #2 since 0s, c #3 since 0s
    ! semaphore:denied d ×1 free 0
    ~ nothing changes
  `;

  story('a request for more than there will ever be is refused at once', aSemaphore(4))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 . . .]

    > heavy acquires 4
    = queued at 1, 3 free
    ! semaphore:queued heavy ×4 at 1
    ~ [a#1 . . .], then heavy ×4

    > light acquires 1
    = queued at 2, 3 free
    ! semaphore:queued light ×1 at 2
    ~ [a#1 . . .], then heavy ×4, light ×1

    > resize to 2
    = resized to 2
    ! semaphore:resized capacity 2 from 4
    ! semaphore:denied heavy ×4 free 0
    ! semaphore:acquired light #2 ×1
    + heavy: impossible: a weight of 4 is more than the capacity of 2
    + light: acquired #2, slot 1
    ~ [a#1 light#2]
  `;

  story('what one has from before a shrinking one may ask for again, but not for more', aSemaphore(4))`
    > a acquires 3
    = acquired #1, slots 0 1 2
    ! semaphore:acquired a #1 ×3
    ~ [a#1 a#1 a#1 .]

    > resize to 2
    = resized to 2
    ! semaphore:resized capacity 2 from 4
    ~ [a#1 a#1] a#1

    > a tries 3
    = already-held #1, slots 0 1 2
    ~ nothing changes

    > a tries 4
    = impossible: a weight of 4 is more than the capacity of 2
    ~ nothing changes
  `;

  story('a capacity is a whole number from one up', aSemaphore(2))`
    > resize to 0
    = impossible: a capacity is a whole number from 1 up, not 0
    ~ nothing changes

    > resize to -1
    = impossible: a capacity is a whole number from 1 up, not -1
    ~ nothing changes

    > resize to 1.5
    = impossible: a capacity is a whole number from 1 up, not 1.5
    ~ nothing changes

    > resize to NaN
    = impossible: a capacity is a whole number from 1 up, not NaN
    ~ nothing changes
  `;
});

describe('taking slots by force', () => {
  story('an administrator takes as many as needed, from the youngest grants first', aSemaphore(4))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 . . .]

    > b acquires 1
    = acquired #2, slot 1
    ! semaphore:acquired b #2 ×1
    ~ [a#1 b#2 . .]

    > c acquires 2
    = acquired #3, slots 2 3
    ! semaphore:acquired c #3 ×2
    ~ [a#1 b#2 c#3 c#3]

    > admin forces 1, because "hotfix"
    = acquired #4, slot 2
    ! semaphore:forced c #3 ×2 by admin reason hotfix
    ! semaphore:acquired admin #4 ×1
    - c #3: forced by admin, because "hotfix"
    ~ [a#1 b#2 admin#4 .]

    > admin-2 forces 3, because "hotter fix"
    = acquired #5, slots 1 2 3
    ! semaphore:forced admin #4 ×1 by admin-2 reason hotter fix
    ! semaphore:forced b #2 ×1 by admin-2 reason hotter fix
    ! semaphore:acquired admin-2 #5 ×3
    - admin #4: forced by admin-2, because "hotter fix"
    - b #2: forced by admin-2, because "hotter fix"
    ~ [a#1 admin-2#5 admin-2#5 admin-2#5]

    > c renews
    = not-holder
    ~ nothing changes

    > c releases
    = not-holder
    ~ nothing changes
  `;

  story('from stale holders before live ones', aSemaphore(2))`
    > stale holds wait for a person
    = configured
    ~ [. .]

    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 .]

    > b acquires 1
    = acquired #2, slot 1
    ! semaphore:acquired b #2 ×1
    ~ [a#1 b#2]

    > a's lease ends
    ~ [a#1? b#2]

    > admin forces 1
    = acquired #3, slot 0
    ! semaphore:forced a #1 ×1 by admin
    ! semaphore:acquired admin #3 ×1
    - a #1: forced by admin
    ~ [admin#3 b#2]
  `;

  story('what is taken beyond the need goes to those who wait', aSemaphore(3))`
    > a acquires 3
    = acquired #1, slots 0 1 2
    ! semaphore:acquired a #1 ×3
    ~ [a#1 a#1 a#1]

    > b acquires 1
    = queued at 1, 0 free
    ! semaphore:queued b ×1 at 1
    ~ [a#1 a#1 a#1], then b ×1

    > c acquires 2
    = queued at 2, 0 free
    ! semaphore:queued c ×2 at 2
    ~ [a#1 a#1 a#1], then b ×1, c ×2

    > admin forces 1, because "hotfix"
    = acquired #2, slot 0
    ! semaphore:forced a #1 ×3 by admin reason hotfix
    ! semaphore:acquired admin #2 ×1
    ! semaphore:acquired b #3 ×1
    + b: acquired #3, slot 1
    - a #1: forced by admin, because "hotfix"
    ~ [admin#2 b#3 .], then c ×2
  `;

  story('a holder grows by force at the cost of others, never of itself', aSemaphore(3))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 . .]

    > b acquires 1
    = acquired #2, slot 1
    ! semaphore:acquired b #2 ×1
    ~ [a#1 b#2 .]

    > c acquires 1
    = acquired #3, slot 2
    ! semaphore:acquired c #3 ×1
    ~ [a#1 b#2 c#3]

    > b forces 2
    = increased #2, slots 1 2
    ! semaphore:forced c #3 ×1 by b
    ! semaphore:acquired b #2 ×2
    - c #3: forced by b
    ~ [a#1 b#2 b#2]

    > b forces 3
    = increased #2, slots 1 2 0
    ! semaphore:forced a #1 ×1 by b
    ! semaphore:acquired b #2 ×3
    - a #1: forced by b
    ~ [b#2 b#2 b#2]
  `;

  story('an administrator breaks it, and those who wait have it', aSemaphore(2))`
    > a acquires 1
    = acquired #1, slot 0
    ! semaphore:acquired a #1 ×1
    ~ [a#1 .]

    > b acquires 1
    = acquired #2, slot 1
    ! semaphore:acquired b #2 ×1
    ~ [a#1 b#2]

    > c acquires 2
    = queued at 1, 0 free
    ! semaphore:queued c ×2 at 1
    ~ [a#1 b#2], then c ×2

    > admin breaks it, because "stuck"
    = broken: a #1, b #2
    ! semaphore:forced a #1 ×1 by admin reason stuck
    ! semaphore:forced b #2 ×1 by admin reason stuck
    ! semaphore:acquired c #3 ×2
    + c: acquired #3, slots 0 1
    - a #1: forced by admin, because "stuck"
    - b #2: forced by admin, because "stuck"
    ~ [c#3 c#3]

    > c releases
    = released
    ! semaphore:released c #3 ×2
    ~ [. .]

    > admin breaks it, because "just to be sure"
    = broken: nobody
    ~ nothing changes
  `;
});
