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

  story('whose worker died is pending at once, and told of by whoever finds it', aTask)`
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
