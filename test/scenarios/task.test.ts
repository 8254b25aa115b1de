/** SPEC 6 on one task, sentence by sentence, as far as the bare decisions can show it. */
import { describe } from 'vitest';
import { story } from './story.ts';
import { aTask } from './tasks.ts';

describe('claiming a task', () => {
  story('one worker gets it, and completes it for good', aTask)`
    > w1 claims
    = missing
    ~ not published

    > ci publishes
    = published
    ~ pending

    > ci publishes
    = exists
    ~ pending

    > w1 claims
    = claimed #1
    ! task:claimed w1
    ~ running by w1 #1, tried once

    > w2 claims
    = taken by w1
    ~ running by w1 #1, tried once

    > w2 completes
    = not-owner
    ~ running by w1 #1, tried once

    > w1 completes
    = completed
    ! task:completed w1
    ~ complete by w1 #1, tried once

    # Its owner is on no lease any more: nobody can have it again, and nothing ends it twice.
    > w1's lease ends
    ~ complete by w1 #1, tried once

    > w2 claims
    = finished: complete
    ~ complete by w1 #1, tried once

    > w1 releases #1
    = not-owner
    ~ complete by w1 #1, tried once
  `;

  story('a worker that overslept cannot finish what it has claimed again since', aTask)`
    > ci publishes
    = published
    ~ pending

    > w1 claims
    = claimed #1
    ! task:claimed w1
    ~ running by w1 #1, tried once

    > w1's lease ends
    ~ pending, tried once (says running)

    > w1 claims
    = claimed #2
    ! task:requeued w1
    ! task:claimed w1
    ~ running by w1 #2, tried 2 times

    > w1 completes #1
    = not-owner
    ~ running by w1 #2, tried 2 times

    > w1 completes #2
    = completed
    ! task:completed w1
    ~ complete by w1 #2, tried 2 times
  `;

  story('it is for those who have what it asks for, once what it depends on is complete', aTask)`
    > ci publishes needing gpu after build
    = published
    ~ pending

    > w1 claims having gpu
    = blocked: task build does not exist
    ~ pending

    > build is running
    ~ pending

    > w1 claims having gpu
    = blocked: task build is not complete yet
    ~ pending

    > build is failed
    ~ pending

    > w1 claims having gpu
    = blocked: task build has failed
    ~ pending

    > build is complete
    ~ pending

    > w1 claims having rust
    = unfit: lacks gpu
    ~ pending

    > w1 claims having gpu
    = claimed #1
    ! task:claimed w1
    ~ running by w1 #1, tried once
  `;
});

describe('a task that is not completed', () => {
  story('given back, it was not tried', aTask)`
    > ci publishes
    = published
    ~ pending

    > w1 claims
    = claimed #1
    ! task:claimed w1
    ~ running by w1 #1, tried once

    > w1 releases
    = released
    ! task:released w1
    ~ pending
  `;

  story('failed, it is tried again as often as was said', aTask)`
    > ci publishes with 1 retries
    = published
    ~ pending

    > w1 claims
    = claimed #1
    ! task:claimed w1
    ~ running by w1 #1, tried once

    > w1 fails, because "no network"
    = retried
    ! task:requeued w1: no network
    ~ pending, tried once

    > w2 claims
    = claimed #2
    ! task:claimed w2
    ~ running by w2 #2, tried 2 times

    > w2 fails, because "no network"
    = failed
    ! task:failed w2: no network
    ~ failed by w2 #2, tried 2 times

    > w3 claims
    = finished: failed
    ~ failed by w2 #2, tried 2 times
  `;

  story('whose worker died is pending at once, and reported by the process that finds it', aTask)`
    > ci publishes
    = published
    ~ pending

    > w1 claims
    = claimed #1
    ! task:claimed w1
    ~ running by w1 #1, tried once

    > w1's lease ends
    ~ pending, tried once (says running)

    > maintenance
    ! task:requeued w1
    ~ pending, tried once

    > maintenance
    ~ pending, tried once
  `;

  story('that failed is tried again after a pause, or at once if a person says so', aTask)`
    > ci publishes with 2 retries pausing
    = published
    ~ pending

    > w1 claims
    = claimed #1
    ! task:claimed w1
    ~ running by w1 #1, tried once

    > w1 fails, because "no network"
    = retried
    ! task:requeued w1: no network
    ~ pending, tried once

    > w1 claims
    = blocked: it failed, and the pause before the next attempt is not over
    ~ pending, tried once

    > w1 completes #1
    = not-owner
    ~ pending, tried once

    > the pause ends
    ~ pending, tried once

    > w1 claims
    = claimed #2
    ! task:claimed w1
    ~ running by w1 #2, tried 2 times

    > w1 fails, because "no network"
    = retried
    ! task:requeued w1: no network
    ~ pending, tried 2 times

    > admin retries
    = requeued
    ! task:requeued admin
    ~ pending, tried 2 times

    > w1 claims
    = claimed #3
    ! task:claimed w1
    ~ running by w1 #3, tried 3 times
  `;

  story('that ends its workers fails with the third, until a person retries it', aTask)`
    > ci publishes
    = published
    ~ pending

    > w1 claims
    = claimed #1
    ! task:claimed w1
    ~ running by w1 #1, tried once

    > w1's lease ends
    ~ pending, tried once (says running)

    > w2 claims
    = claimed #2
    ! task:requeued w1
    ! task:claimed w2
    ~ running by w2 #2, tried 2 times

    > w2's lease ends
    ~ pending, tried 2 times (says running)

    > maintenance
    ! task:requeued w2
    ~ pending, tried 2 times

    > w3 claims
    = claimed #3
    ! task:claimed w3
    ~ running by w3 #3, tried 3 times

    > w3's lease ends
    ~ pending, tried 3 times (says running)

    > w4 claims
    = finished: failed
    ! task:failed w3: 3 workers died or lost the claim while working on it, the last one w3
    ~ failed by w3 #4, tried 3 times

    > admin retries
    = requeued
    ! task:requeued admin
    ~ pending, tried 3 times

    > w4 claims
    = claimed #5
    ! task:claimed w4
    ~ running by w4 #5, tried 4 times

    > w4's lease ends
    ~ pending, tried 4 times (says running)

    # It counts from the beginning.
    > maintenance
    ! task:requeued w4
    ~ pending, tried 4 times
  `;

  story('that is complete is done again only if it is requeued, and forgotten only if no worker has it', aTask)`
    > ci publishes
    = published
    ~ pending

    > w1 claims
    = claimed #1
    ! task:claimed w1
    ~ running by w1 #1, tried once

    > admin requeues
    = running
    ~ running by w1 #1, tried once

    > admin forgets
    = running
    ~ running by w1 #1, tried once

    > w1 completes
    = completed
    ! task:completed w1
    ~ complete by w1 #1, tried once

    > admin retries
    = unchanged
    ~ complete by w1 #1, tried once

    > admin requeues
    = requeued
    ! task:requeued admin
    ~ pending, tried once

    > admin forgets
    = forgotten
    ~ not published

    > ci publishes
    = published
    ~ pending
  `;

  story('of a worker on no lease is freed only by a person', aTask)`
    > ci publishes
    = published
    ~ pending

    > py claims without a lease
    ~ running by py #1

    > maintenance
    ~ running by py #1

    > w1 claims
    = taken by py, on no lease
    ~ running by py #1

    > admin takes it away, because "py was switched off"
    = forced
    ! task:released py by admin: py was switched off
    ~ pending
  `;

  story("that nobody can read is nobody's", aTask)`
    > py puts data that is no JSON
    = published
    ~ pending

    > w1 claims
    = blocked: its data is not JSON
    ~ pending
  `;
});
