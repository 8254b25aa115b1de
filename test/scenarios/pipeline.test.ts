/** SPEC 5 on one pipeline, sentence by sentence: what its driver is told to do, and what becomes of it. */
import { any, fileExists, type Guard, lockFree, taskDone } from 'signalbox/core';
import { describe } from 'vitest';
import { aPipeline } from './pipelines.ts';
import { story } from './story.ts';

const quiet: Guard = { id: 'quiet', condition: lockFree('main') };
const go: Guard = { id: 'go', condition: fileExists('go') };
const review: Guard = { id: 'review', condition: taskDone('review') };
const impossible: Guard = { id: 'impossible', condition: any([]) };

describe('a pipeline', () => {
  story('that has failed starts again from a phase', aPipeline({ name: 'build' }, { name: 'test' }, { name: 'push' }))`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting, test waiting, push waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running, test waiting, push waiting

    > w1's command succeeds with VERSION=1
    = ok; look at the guards before test
    ~ running by w1 #1 before test | build done, test waiting, push waiting | VERSION=1

    > w1 begins
    = ok; run test
    ! pipeline:phase w1, test, attempt: 1
    ~ running by w1 #1 during test | build done, test running, push waiting | VERSION=1

    > ann starts it again from build
    = misplaced; run test
    ~ running by w1 #1 during test | build done, test running, push waiting | VERSION=1

    > w1's command fails: exit code 1
    = ok; leave
    ! pipeline:failed w1, test, reason: phase test: exit code 1
    ~ failed during test: phase test: exit code 1 | build done, test failed, push waiting | VERSION=1

    > w2 drives it
    = over; leave
    ~ failed during test: phase test: exit code 1 | build done, test failed, push waiting | VERSION=1

    > ann starts it again from push
    = over; leave
    ~ failed during test: phase test: exit code 1 | build done, test failed, push waiting | VERSION=1

    > ann starts it again from lunch
    = over; leave
    ~ failed during test: phase test: exit code 1 | build done, test failed, push waiting | VERSION=1

    > ann starts it again from test
    = ok; look at the guards before test
    ! pipeline:resumed ann, test, why: ann starts it again
    ~ running before test | build done, test waiting, push waiting | VERSION=1

    > w2 drives it
    = ok; look at the guards before test
    ! pipeline:resumed w2, why: a driver took over, token: 3
    ~ running by w2 #3 before test | build done, test waiting, push waiting | VERSION=1

    > w2 begins
    = ok; run test
    ! pipeline:phase w2, test, attempt: 1
    ~ running by w2 #3 during test | build done, test running, 2 runs, push waiting | VERSION=1

    > w2's command succeeds
    = ok; look at the guards before push
    ~ running by w2 #3 before push | build done, test done, 2 runs, push waiting | VERSION=1

    > w2 begins
    = ok; run push
    ! pipeline:phase w2, push, attempt: 1
    ~ running by w2 #3 during push | build done, test done, 2 runs, push running | VERSION=1

    > w2's command succeeds
    = ok; leave
    ! pipeline:done w2
    ~ done | build done, test done, 2 runs, push done | VERSION=1

    > ann starts it again from build
    = over; leave
    ~ done | build done, test done, 2 runs, push done | VERSION=1
  `;

  story('runs its phases in order, and is done', aPipeline({ name: 'build' }, { name: 'deploy' }))`
    > ann starts it
    = started; look at the guards before build
    ! pipeline:started ann, release
    ~ pending | build waiting, deploy waiting

    > w1 drives it
    = ok; look at the guards before build
    ~ running by w1 #1 before build | build waiting, deploy waiting

    > w1 looks
    = ok; begin build
    ~ running by w1 #1 before build | build waiting, deploy waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running, deploy waiting

    > w1's command succeeds
    = ok; look at the guards before deploy
    ~ running by w1 #1 before deploy | build done, deploy waiting

    > w1 looks
    = ok; begin deploy
    ~ running by w1 #1 before deploy | build done, deploy waiting

    > w1 begins
    = ok; run deploy
    ! pipeline:phase w1, deploy, attempt: 1
    ~ running by w1 #1 during deploy | build done, deploy running

    > w1's command succeeds
    = ok; leave
    ! pipeline:done w1
    ~ done | build done, deploy done

    # It is over, and nothing changes it any more.
    > w1 begins
    = over; leave
    ~ done | build done, deploy done

    > w2 drives it
    = over; leave
    ~ done | build done, deploy done

    > ann cancels it, because "too late"
    = over; leave
    ~ done | build done, deploy done

    > ann starts it
    = exists; leave
    ~ done | build done, deploy done
  `;

  story('is started once under one id', aPipeline({ name: 'build' }))`
    > w1 drives it
    = missing; leave
    ~ not started

    > ann cancels it, because "it is not there"
    = missing; leave
    ~ not started

    > ann starts it
    = started; look at the guards before build
    ! pipeline:started ann, release
    ~ pending | build waiting

    > bob starts it
    = exists; look at the guards before build
    ~ pending | build waiting

    > w1 drives it
    = ok; look at the guards before build
    ~ running by w1 #2 before build | build waiting

    > bob starts it
    = exists; look at the guards before build
    ~ running by w1 #2 before build | build waiting
  `;

  story('hears nothing that is not about where it is', aPipeline({ name: 'build', post: [go] }))`
    > ann starts it
    = started; look at the guards before build
    ! pipeline:started ann, release
    ~ pending | build waiting

    > w1 drives it
    = ok; look at the guards before build
    ~ running by w1 #1 before build | build waiting

    > w1's command succeeds
    = misplaced; look at the guards before build
    ~ running by w1 #1 before build | build waiting

    > w1's pause is over
    = misplaced; look at the guards before build
    ~ running by w1 #1 before build | build waiting

    > ann decides through w1: skip
    = not-asked; look at the guards before build
    ~ running by w1 #1 before build | build waiting

    > w1 looks after
    = misplaced; look at the guards before build
    ~ running by w1 #1 before build | build waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running

    > w1 begins
    = misplaced; run build
    ~ running by w1 #1 during build | build running

    > w1 looks before
    = misplaced; run build
    ~ running by w1 #1 during build | build running

    > w1 cannot have lock/main yet
    = misplaced; run build
    ~ running by w1 #1 during build | build running

    > w1 is refused lock/main, because "it would deadlock"
    = misplaced; run build
    ~ running by w1 #1 during build | build running

    > ann decides through w1: rerun
    = not-asked; run build
    ~ running by w1 #1 during build | build running

    > w1's command succeeds
    = ok; look at the guards after build
    ~ running by w1 #1 after build | build done

    > w1 looks before
    = misplaced; look at the guards after build
    ~ running by w1 #1 after build | build done

    > w1's command fails: exit code 1
    = misplaced; look at the guards after build
    ~ running by w1 #1 after build | build done
  `;
});

describe('a guard before a phase', () => {
  story(
    'that fails blocks it, says why and what would wake it; passing, it resumes',
    aPipeline({ name: 'merge', pre: [quiet] }),
  )`
    > ann starts it, and w1 drives it, while lock main is held by worker:7
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; look at the guards before merge
    ! guard:failed w1, quiet, merge, reasons: lock "main" is held by worker:7, action: block
    ! pipeline:blocked w1, merge, on: guard, reasons: lock "main" is held by worker:7
    ~ blocked by w1 #1 before merge on guard quiet (open): lock "main" is held by worker:7; woken by lock:released, lock:reclaimed, lock:forced | merge waiting

    # Woken for nothing: it is as it was, and nobody is told that it is blocked again.
    > w1 looks
    = ok; look at the guards before merge
    ! guard:failed w1, quiet, merge, reasons: lock "main" is held by worker:7, action: block
    ~ blocked by w1 #1 before merge on guard quiet (open): lock "main" is held by worker:7; woken by lock:released, lock:reclaimed, lock:forced | merge waiting

    > lock main is held by worker:8
    ~ blocked by w1 #1 before merge on guard quiet (open): lock "main" is held by worker:7; woken by lock:released, lock:reclaimed, lock:forced | merge waiting

    > w1 looks
    = ok; look at the guards before merge
    ! guard:failed w1, quiet, merge, reasons: lock "main" is held by worker:8, action: block
    ! pipeline:blocked w1, merge, on: guard, reasons: lock "main" is held by worker:8
    ~ blocked by w1 #1 before merge on guard quiet (open): lock "main" is held by worker:8; woken by lock:released, lock:reclaimed, lock:forced | merge waiting

    > lock main is free
    ~ blocked by w1 #1 before merge on guard quiet (open): lock "main" is held by worker:8; woken by lock:released, lock:reclaimed, lock:forced | merge waiting

    > w1 looks
    = ok; begin merge
    ! guard:passed w1, quiet, merge
    ~ blocked by w1 #1 before merge on guard quiet (open): lock "main" is held by worker:8; woken by lock:released, lock:reclaimed, lock:forced | merge waiting

    > w1 begins
    = ok; run merge
    ! pipeline:resumed w1, merge
    ! pipeline:phase w1, merge, attempt: 1
    ~ running by w1 #1 during merge | merge running

    > w1's command succeeds
    = ok; leave
    ! pipeline:done w1
    ~ done | merge done
  `;

  story(
    'tells every guard that fails, with every reason, and is woken by any of them',
    aPipeline({ name: 'merge', pre: [quiet, go, review] }),
  )`
    > ann starts it, and w1 drives it, while lock main is held by worker:7 and file go is not there and task review is complete
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; look at the guards before merge
    ! guard:failed w1, quiet, merge, reasons: lock "main" is held by worker:7, action: block
    ! guard:failed w1, go, merge, reasons: file "go" does not exist, action: block
    ! guard:passed w1, review, merge
    ! pipeline:blocked w1, merge, on: guard, reasons: lock "main" is held by worker:7; file "go" does not exist
    ~ blocked by w1 #1 before merge on guard quiet (open): lock "main" is held by worker:7 and go (open): file "go" does not exist; woken by lock:released, lock:reclaimed, lock:forced, looking at file:go | merge waiting

    > lock main is free
    ~ blocked by w1 #1 before merge on guard quiet (open): lock "main" is held by worker:7 and go (open): file "go" does not exist; woken by lock:released, lock:reclaimed, lock:forced, looking at file:go | merge waiting

    > w1 looks
    = ok; look at the guards before merge
    ! guard:passed w1, quiet, merge
    ! guard:failed w1, go, merge, reasons: file "go" does not exist, action: block
    ! guard:passed w1, review, merge
    ! pipeline:blocked w1, merge, on: guard, reasons: file "go" does not exist
    ~ blocked by w1 #1 before merge on guard go (open): file "go" does not exist; woken by looking at file:go | merge waiting

    > file go is there
    ~ blocked by w1 #1 before merge on guard go (open): file "go" does not exist; woken by looking at file:go | merge waiting

    > w1 looks
    = ok; begin merge
    ! guard:passed w1, quiet, merge
    ! guard:passed w1, go, merge
    ! guard:passed w1, review, merge
    ~ blocked by w1 #1 before merge on guard go (open): file "go" does not exist; woken by looking at file:go | merge waiting
  `;

  story('that cannot pass as things stand blocks, and says so', aPipeline({ name: 'merge', pre: [review] }))`
    > ann starts it, and w1 drives it, while task review does not exist
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; look at the guards before merge
    ! guard:failed w1, review, merge, reasons: task "review" does not exist: nobody has published it; taskDone cannot pass as things stand, action: block
    ! pipeline:blocked w1, merge, on: guard, reasons: task "review" does not exist: nobody has published it; taskDone cannot pass as things stand
    ~ blocked by w1 #1 before merge on guard review (stuck): task "review" does not exist: nobody has published it; taskDone cannot pass as things stand; woken by task:completed | merge waiting

    > task review is complete
    ~ blocked by w1 #1 before merge on guard review (stuck): task "review" does not exist: nobody has published it; taskDone cannot pass as things stand; woken by task:completed | merge waiting

    > w1 looks
    = ok; begin merge
    ! guard:passed w1, review, merge
    ~ blocked by w1 #1 before merge on guard review (stuck): task "review" does not exist: nobody has published it; taskDone cannot pass as things stand; woken by task:completed | merge waiting
  `;

  story(
    'that can never pass fails the pipeline: to wait would be to wait for ever, and say nothing',
    aPipeline({ name: 'merge', pre: [quiet, impossible] }),
  )`
    > ann starts it, and w1 drives it, while lock main is held by worker:7
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; leave
    ! guard:failed w1, quiet, merge, reasons: lock "main" is held by worker:7, action: block
    ! guard:failed w1, impossible, merge, reasons: "any" of no conditions can never pass, action: block
    ! pipeline:failed w1, merge, reason: phase merge, guard impossible: can never pass: "any" of no conditions can never pass
    ~ failed before merge: phase merge, guard impossible: can never pass: "any" of no conditions can never pass | merge failed
  `;

  story('that cannot be found out blocks: it never passes, and fails nothing', aPipeline({ name: 'merge', pre: [go] }))`
    > ann starts it, and w1 drives it, while file go cannot be looked at: EACCES
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; look at the guards before merge
    ! guard:failed w1, go, merge, reasons: file:go could not be checked: EACCES, action: block
    ! pipeline:blocked w1, merge, on: guard, reasons: file:go could not be checked: EACCES
    ~ blocked by w1 #1 before merge on guard go (unknown): file:go could not be checked: EACCES; woken by looking at file:go | merge waiting

    > nobody looks at file go
    ~ blocked by w1 #1 before merge on guard go (unknown): file:go could not be checked: EACCES; woken by looking at file:go | merge waiting

    > w1 looks
    = ok; look at the guards before merge
    ! guard:failed w1, go, merge, reasons: file:go has not been checked, action: block
    ! pipeline:blocked w1, merge, on: guard, reasons: file:go has not been checked
    ~ blocked by w1 #1 before merge on guard go (unknown): file:go has not been checked; woken by looking at file:go | merge waiting

    > file go is there
    ~ blocked by w1 #1 before merge on guard go (unknown): file:go has not been checked; woken by looking at file:go | merge waiting

    > w1 looks
    = ok; begin merge
    ! guard:passed w1, go, merge
    ~ blocked by w1 #1 before merge on guard go (unknown): file:go has not been checked; woken by looking at file:go | merge waiting
  `;

  story('that was not judged has not passed', aPipeline({ name: 'merge', pre: [quiet, go] }))`
    > ann starts it, and w1 drives it, while lock main is free and file go is there
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks, but not at go
    = ok; look at the guards before merge
    ! guard:passed w1, quiet, merge
    ! guard:failed w1, go, merge, reasons: it was not judged, action: block
    ! pipeline:blocked w1, merge, on: guard, reasons: it was not judged
    ~ blocked by w1 #1 before merge on guard go (unknown): it was not judged; woken by looking at file:go | merge waiting

    > w1 looks
    = ok; begin merge
    ! guard:passed w1, quiet, merge
    ! guard:passed w1, go, merge
    ~ blocked by w1 #1 before merge on guard go (unknown): it was not judged; woken by looking at file:go | merge waiting
  `;

  story(
    'is woken by what it names, if it names anything',
    aPipeline({ name: 'merge', pre: [{ ...quiet, wakeOn: ['task:*'] }] }),
  )`
    > ann starts it, and w1 drives it, while lock main is held by worker:7
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; look at the guards before merge
    ! guard:failed w1, quiet, merge, reasons: lock "main" is held by worker:7, action: block
    ! pipeline:blocked w1, merge, on: guard, reasons: lock "main" is held by worker:7
    ~ blocked by w1 #1 before merge on guard quiet (open): lock "main" is held by worker:7; woken by task:* | merge waiting
  `;
});

describe('a guard that warns', () => {
  const warns = { ...go, onFailure: 'warn' } as const;

  story('lets the phase run, and is remembered', aPipeline({ name: 'merge', pre: [warns] }))`
    > ann starts it, and w1 drives it, while file go is not there
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; begin merge
    ! guard:failed w1, go, merge, reasons: file "go" does not exist, action: warn
    ~ running by w1 #1 before merge | merge waiting (warned: guard go: file "go" does not exist)

    # The same warning is kept once.
    > w1 looks
    = ok; begin merge
    ! guard:failed w1, go, merge, reasons: file "go" does not exist, action: warn
    ~ running by w1 #1 before merge | merge waiting (warned: guard go: file "go" does not exist)

    > w1 begins
    = ok; run merge
    ! pipeline:phase w1, merge, attempt: 1
    ~ running by w1 #1 during merge | merge running (warned: guard go: file "go" does not exist)

    > w1's command succeeds
    = ok; leave
    ! pipeline:done w1
    ~ done | merge done (warned: guard go: file "go" does not exist)
  `;

  story('lets it run although it could not be found out', aPipeline({ name: 'merge', pre: [warns] }))`
    > ann starts it, and w1 drives it, while file go cannot be looked at: EACCES
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; begin merge
    ! guard:failed w1, go, merge, reasons: file:go could not be checked: EACCES, action: warn
    ~ running by w1 #1 before merge | merge waiting (warned: guard go: file:go could not be checked: EACCES)
  `;

  story('lets it run although it was not judged', aPipeline({ name: 'merge', pre: [warns] }))`
    > ann starts it, and w1 drives it
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks, but not at go
    = ok; begin merge
    ! guard:failed w1, go, merge, reasons: it was not judged, action: warn
    ~ running by w1 #1 before merge | merge waiting (warned: guard go: it was not judged)
  `;

  story(
    'lets it run although it can never pass',
    aPipeline({ name: 'merge', pre: [{ ...impossible, onFailure: 'warn' }] }),
  )`
    > ann starts it, and w1 drives it
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; begin merge
    ! guard:failed w1, impossible, merge, reasons: "any" of no conditions can never pass, action: warn
    ~ running by w1 #1 before merge | merge waiting (warned: guard impossible: "any" of no conditions can never pass)
  `;

  story('does not hide another that blocks', aPipeline({ name: 'merge', pre: [warns, quiet] }))`
    > ann starts it, and w1 drives it, while file go is not there and lock main is held by worker:7
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; look at the guards before merge
    ! guard:failed w1, go, merge, reasons: file "go" does not exist, action: warn
    ! guard:failed w1, quiet, merge, reasons: lock "main" is held by worker:7, action: block
    ! pipeline:blocked w1, merge, on: guard, reasons: lock "main" is held by worker:7
    ~ blocked by w1 #1 before merge on guard quiet (open): lock "main" is held by worker:7; woken by lock:released, lock:reclaimed, lock:forced | merge waiting

    > lock main is free
    ~ blocked by w1 #1 before merge on guard quiet (open): lock "main" is held by worker:7; woken by lock:released, lock:reclaimed, lock:forced | merge waiting

    > w1 looks
    = ok; begin merge
    ! guard:failed w1, go, merge, reasons: file "go" does not exist, action: warn
    ! guard:passed w1, quiet, merge
    ~ blocked by w1 #1 before merge on guard quiet (open): lock "main" is held by worker:7; woken by lock:released, lock:reclaimed, lock:forced | merge waiting (warned: guard go: file "go" does not exist)
  `;
});

describe('a guard that is retried', () => {
  const retried = { ...quiet, onFailure: { retry: 5_000 } };

  story(
    'blocks, and is looked at again after the time it says, whatever happens',
    aPipeline({ name: 'merge', pre: [retried, { ...go, onFailure: { retry: 2_000 } }] }),
  )`
    > ann starts it, and w1 drives it, while lock main is held by worker:7 and file go is there
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; look at the guards before merge, again after 5 s at the latest
    ! guard:failed w1, quiet, merge, reasons: lock "main" is held by worker:7, action: retry
    ! guard:passed w1, go, merge
    ! pipeline:blocked w1, merge, on: guard, reasons: lock "main" is held by worker:7
    ~ blocked by w1 #1 before merge on guard quiet (open): lock "main" is held by worker:7; woken by lock:released, lock:reclaimed, lock:forced, after 5 s | merge waiting

    > file go is not there
    ~ blocked by w1 #1 before merge on guard quiet (open): lock "main" is held by worker:7; woken by lock:released, lock:reclaimed, lock:forced, after 5 s | merge waiting

    # Two are waited for: the shorter time counts.
    > w1 looks
    = ok; look at the guards before merge, again after 2 s at the latest
    ! guard:failed w1, quiet, merge, reasons: lock "main" is held by worker:7, action: retry
    ! guard:failed w1, go, merge, reasons: file "go" does not exist, action: retry
    ! pipeline:blocked w1, merge, on: guard, reasons: lock "main" is held by worker:7; file "go" does not exist
    ~ blocked by w1 #1 before merge on guard quiet (open): lock "main" is held by worker:7 and go (open): file "go" does not exist; woken by lock:released, lock:reclaimed, lock:forced, looking at file:go, after 2 s | merge waiting

    # Whoever takes over keeps to it.
    > w2 drives it
    = ok; look at the guards before merge, again after 2 s at the latest
    ! pipeline:resumed w2, why: a driver took over, token: 2
    ~ blocked by w2 #2 before merge on guard quiet (open): lock "main" is held by worker:7 and go (open): file "go" does not exist; woken by lock:released, lock:reclaimed, lock:forced, looking at file:go, after 2 s | merge waiting

    > lock main is free
    ~ blocked by w2 #2 before merge on guard quiet (open): lock "main" is held by worker:7 and go (open): file "go" does not exist; woken by lock:released, lock:reclaimed, lock:forced, looking at file:go, after 2 s | merge waiting

    > file go is there
    ~ blocked by w2 #2 before merge on guard quiet (open): lock "main" is held by worker:7 and go (open): file "go" does not exist; woken by lock:released, lock:reclaimed, lock:forced, looking at file:go, after 2 s | merge waiting

    > w2 looks
    = ok; begin merge
    ! guard:passed w2, quiet, merge
    ! guard:passed w2, go, merge
    ~ blocked by w2 #2 before merge on guard quiet (open): lock "main" is held by worker:7 and go (open): file "go" does not exist; woken by lock:released, lock:reclaimed, lock:forced, looking at file:go, after 2 s | merge waiting
  `;

  story('is looked at again if it could not be found out', aPipeline({ name: 'merge', pre: [retried] }))`
    > ann starts it, and w1 drives it, while lock main cannot be looked at: no answer
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; look at the guards before merge, again after 5 s at the latest
    ! guard:failed w1, quiet, merge, reasons: lock:main could not be checked: no answer, action: retry
    ! pipeline:blocked w1, merge, on: guard, reasons: lock:main could not be checked: no answer
    ~ blocked by w1 #1 before merge on guard quiet (unknown): lock:main could not be checked: no answer; woken by lock:released, lock:reclaimed, lock:forced, after 5 s | merge waiting
  `;

  story(
    'fails the pipeline if it can never pass',
    aPipeline({ name: 'merge', pre: [{ ...impossible, onFailure: { retry: 5_000 } }] }),
  )`
    > ann starts it, and w1 drives it
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; leave
    ! guard:failed w1, impossible, merge, reasons: "any" of no conditions can never pass, action: retry
    ! pipeline:failed w1, merge, reason: phase merge, guard impossible: can never pass: "any" of no conditions can never pass
    ~ failed before merge: phase merge, guard impossible: can never pass: "any" of no conditions can never pass | merge failed
  `;
});

describe('a guard that fails the pipeline', () => {
  story(
    'does so with its own message',
    aPipeline({ name: 'merge', pre: [{ ...go, onFailure: { fail: 'ask for a go first' } }] }),
  )`
    > ann starts it, and w1 drives it, while file go is not there
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; leave
    ! guard:failed w1, go, merge, reasons: file "go" does not exist, action: fail
    ! pipeline:failed w1, merge, reason: ask for a go first (phase merge, guard go: file "go" does not exist)
    ~ failed before merge: ask for a go first (phase merge, guard go: file "go" does not exist) | merge failed

    > w1 looks
    = over; leave
    ~ failed before merge: ask for a go first (phase merge, guard go: file "go" does not exist) | merge failed
  `;

  story('does so without one', aPipeline({ name: 'merge', pre: [{ ...go, onFailure: { fail: '' } }] }))`
    > ann starts it, and w1 drives it, while file go is not there
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; leave
    ! guard:failed w1, go, merge, reasons: file "go" does not exist, action: fail
    ! pipeline:failed w1, merge, reason: phase merge, guard go: file "go" does not exist
    ~ failed before merge: phase merge, guard go: file "go" does not exist | merge failed
  `;

  story(
    'only blocks it while it cannot be found out, which may be different in a moment',
    aPipeline({ name: 'merge', pre: [{ ...go, onFailure: { fail: 'ask for a go first' } }] }),
  )`
    > ann starts it, and w1 drives it, while file go cannot be looked at: EACCES
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; look at the guards before merge
    ! guard:failed w1, go, merge, reasons: file:go could not be checked: EACCES, action: fail
    ! pipeline:blocked w1, merge, on: guard, reasons: file:go could not be checked: EACCES
    ~ blocked by w1 #1 before merge on guard go (unknown): file:go could not be checked: EACCES; woken by looking at file:go | merge waiting

    > file go is not there
    ~ blocked by w1 #1 before merge on guard go (unknown): file:go could not be checked: EACCES; woken by looking at file:go | merge waiting

    > w1 looks
    = ok; leave
    ! guard:failed w1, go, merge, reasons: file "go" does not exist, action: fail
    ! pipeline:failed w1, merge, reason: ask for a go first (phase merge, guard go: file "go" does not exist)
    ~ failed before merge: ask for a go first (phase merge, guard go: file "go" does not exist) | merge failed
  `;

  story(
    'goes before another that blocks',
    aPipeline({ name: 'merge', pre: [quiet, { ...go, onFailure: { fail: '' } }] }),
  )`
    > ann starts it, and w1 drives it, while lock main is held by worker:7 and file go is not there
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; leave
    ! guard:failed w1, quiet, merge, reasons: lock "main" is held by worker:7, action: block
    ! guard:failed w1, go, merge, reasons: file "go" does not exist, action: fail
    ! pipeline:failed w1, merge, reason: phase merge, guard go: file "go" does not exist
    ~ failed before merge: phase merge, guard go: file "go" does not exist | merge failed
  `;
});

describe('a guard after a phase', () => {
  const checked = aPipeline({ name: 'test', post: [go] }, { name: 'deploy' });

  story('that fails blocks after its command, which is not run again', checked)`
    > ann starts it, and w1 drives it, while file go is not there
    = ok; look at the guards before test
    ! pipeline:started ann, release
    ~ running by w1 #1 before test | test waiting, deploy waiting

    > w1 begins
    = ok; run test
    ! pipeline:phase w1, test, attempt: 1
    ~ running by w1 #1 during test | test running, deploy waiting

    > w1's command succeeds with REPORT=r.html
    = ok; look at the guards after test
    ~ running by w1 #1 after test | test done, deploy waiting | REPORT=r.html

    > w1 looks
    = ok; look at the guards after test
    ! guard:failed w1, go, test, reasons: file "go" does not exist, action: block
    ! pipeline:blocked w1, test, on: guard, reasons: file "go" does not exist
    ~ blocked by w1 #1 after test on guard go (open): file "go" does not exist; woken by looking at file:go | test done, deploy waiting | REPORT=r.html

    > file go is there
    ~ blocked by w1 #1 after test on guard go (open): file "go" does not exist; woken by looking at file:go | test done, deploy waiting | REPORT=r.html

    > w1 looks
    = ok; look at the guards before deploy
    ! guard:passed w1, go, test
    ! pipeline:resumed w1, test
    ~ running by w1 #1 before deploy | test done, deploy waiting | REPORT=r.html

    > w1 begins
    = ok; run deploy
    ! pipeline:phase w1, deploy, attempt: 1
    ~ running by w1 #1 during deploy | test done, deploy running | REPORT=r.html
  `;

  story('of the last phase ends the pipeline when it passes', aPipeline({ name: 'test', post: [go] }))`
    > ann starts it, and w1 drives it, while file go is not there
    = ok; look at the guards before test
    ! pipeline:started ann, release
    ~ running by w1 #1 before test | test waiting

    > w1 begins
    = ok; run test
    ! pipeline:phase w1, test, attempt: 1
    ~ running by w1 #1 during test | test running

    > w1's command succeeds
    = ok; look at the guards after test
    ~ running by w1 #1 after test | test done

    > w1 looks
    = ok; look at the guards after test
    ! guard:failed w1, go, test, reasons: file "go" does not exist, action: block
    ! pipeline:blocked w1, test, on: guard, reasons: file "go" does not exist
    ~ blocked by w1 #1 after test on guard go (open): file "go" does not exist; woken by looking at file:go | test done

    > file go is there
    ~ blocked by w1 #1 after test on guard go (open): file "go" does not exist; woken by looking at file:go | test done

    > w1 looks
    = ok; leave
    ! guard:passed w1, go, test
    ! pipeline:resumed w1, test
    ! pipeline:done w1
    ~ done | test done
  `;

  story(
    'that warns lets the next phase come',
    aPipeline({ name: 'test', post: [{ ...go, onFailure: 'warn' }] }, { name: 'deploy' }),
  )`
    > ann starts it, and w1 drives it, while file go is not there
    = ok; look at the guards before test
    ! pipeline:started ann, release
    ~ running by w1 #1 before test | test waiting, deploy waiting

    > w1 begins
    = ok; run test
    ! pipeline:phase w1, test, attempt: 1
    ~ running by w1 #1 during test | test running, deploy waiting

    > w1's command succeeds
    = ok; look at the guards after test
    ~ running by w1 #1 after test | test done, deploy waiting

    > w1 looks
    = ok; look at the guards before deploy
    ! guard:failed w1, go, test, reasons: file "go" does not exist, action: warn
    ~ running by w1 #1 before deploy | test done (warned: guard go: file "go" does not exist), deploy waiting
  `;

  story(
    'that is retried is looked at again, and nothing is run',
    aPipeline({ name: 'test', post: [{ ...go, onFailure: { retry: 3_000 } }] }),
  )`
    > ann starts it, and w1 drives it, while file go is not there
    = ok; look at the guards before test
    ! pipeline:started ann, release
    ~ running by w1 #1 before test | test waiting

    > w1 begins
    = ok; run test
    ! pipeline:phase w1, test, attempt: 1
    ~ running by w1 #1 during test | test running

    > w1's command succeeds
    = ok; look at the guards after test
    ~ running by w1 #1 after test | test done

    > w1 looks
    = ok; look at the guards after test, again after 3 s at the latest
    ! guard:failed w1, go, test, reasons: file "go" does not exist, action: retry
    ! pipeline:blocked w1, test, on: guard, reasons: file "go" does not exist
    ~ blocked by w1 #1 after test on guard go (open): file "go" does not exist; woken by looking at file:go, after 3 s | test done

    > w1 looks
    = ok; look at the guards after test, again after 3 s at the latest
    ! guard:failed w1, go, test, reasons: file "go" does not exist, action: retry
    ~ blocked by w1 #1 after test on guard go (open): file "go" does not exist; woken by looking at file:go, after 3 s | test done
  `;

  story(
    'that fails the pipeline does so although the command succeeded',
    aPipeline({ name: 'test', post: [{ ...go, onFailure: { fail: 'no report' } }] }),
  )`
    > ann starts it, and w1 drives it, while file go is not there
    = ok; look at the guards before test
    ! pipeline:started ann, release
    ~ running by w1 #1 before test | test waiting

    > w1 begins
    = ok; run test
    ! pipeline:phase w1, test, attempt: 1
    ~ running by w1 #1 during test | test running

    > w1's command succeeds
    = ok; look at the guards after test
    ~ running by w1 #1 after test | test done

    > w1 looks
    = ok; leave
    ! guard:failed w1, go, test, reasons: file "go" does not exist, action: fail
    ! pipeline:failed w1, test, reason: no report (phase test, guard go: file "go" does not exist)
    ~ failed after test: no report (phase test, guard go: file "go" does not exist) | test failed
  `;

  story('that can never pass fails the pipeline', aPipeline({ name: 'test', post: [impossible] }))`
    > ann starts it, and w1 drives it
    = ok; look at the guards before test
    ! pipeline:started ann, release
    ~ running by w1 #1 before test | test waiting

    > w1 begins
    = ok; run test
    ! pipeline:phase w1, test, attempt: 1
    ~ running by w1 #1 during test | test running

    > w1's command succeeds
    = ok; look at the guards after test
    ~ running by w1 #1 after test | test done

    > w1 looks
    = ok; leave
    ! guard:failed w1, impossible, test, reasons: "any" of no conditions can never pass, action: block
    ! pipeline:failed w1, test, reason: phase test, guard impossible: can never pass: "any" of no conditions can never pass
    ~ failed after test: phase test, guard impossible: can never pass: "any" of no conditions can never pass | test failed
  `;

  story('that cannot be found out blocks', checked)`
    > ann starts it, and w1 drives it, while file go cannot be looked at: EACCES
    = ok; look at the guards before test
    ! pipeline:started ann, release
    ~ running by w1 #1 before test | test waiting, deploy waiting

    > w1 begins
    = ok; run test
    ! pipeline:phase w1, test, attempt: 1
    ~ running by w1 #1 during test | test running, deploy waiting

    > w1's command succeeds
    = ok; look at the guards after test
    ~ running by w1 #1 after test | test done, deploy waiting

    > w1 looks
    = ok; look at the guards after test
    ! guard:failed w1, go, test, reasons: file:go could not be checked: EACCES, action: block
    ! pipeline:blocked w1, test, on: guard, reasons: file:go could not be checked: EACCES
    ~ blocked by w1 #1 after test on guard go (unknown): file:go could not be checked: EACCES; woken by looking at file:go | test done, deploy waiting
  `;
});

describe('what a phase holds', () => {
  const merge = { name: 'merge', pre: [quiet], holds: [{ lock: 'trunk' }, { semaphore: 'agents', weight: 2 }] };

  story('is acquired together once its guards pass, and before it begins', aPipeline(merge))`
    > ann starts it, and w1 drives it, while lock main is free
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; acquire lock/trunk and semaphore/agents
    ! guard:passed w1, quiet, merge
    ~ running by w1 #1 before merge | merge waiting

    > w1 begins holding lock/trunk #7
    = ok; run merge
    ! pipeline:phase w1, merge, attempt: 1
    ~ running by w1 #1 during merge | merge running

    > w1's command succeeds
    = ok; leave
    ! pipeline:done w1
    ~ done | merge done
  `;

  story('is waited for; when it is there at last, the guards are looked at again', aPipeline(merge))`
    > ann starts it, and w1 drives it, while lock main is free
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; acquire lock/trunk and semaphore/agents
    ! guard:passed w1, quiet, merge
    ~ running by w1 #1 before merge | merge waiting

    > w1 cannot have lock/trunk yet
    = ok; acquire lock/trunk and semaphore/agents
    ! pipeline:blocked w1, merge, on: holds, reasons: waiting for lock/trunk
    ~ blocked by w1 #1 before merge on lock/trunk | merge waiting

    > w1 cannot have lock/trunk yet
    = ok; acquire lock/trunk and semaphore/agents
    ~ blocked by w1 #1 before merge on lock/trunk | merge waiting

    > w1 cannot have lock/trunk and semaphore/agents yet
    = ok; acquire lock/trunk and semaphore/agents
    ! pipeline:blocked w1, merge, on: holds, reasons: waiting for lock/trunk, semaphore/agents
    ~ blocked by w1 #1 before merge on lock/trunk and semaphore/agents | merge waiting

    # What was true before the wait need not be after it.
    > lock main is held by worker:7
    ~ blocked by w1 #1 before merge on lock/trunk and semaphore/agents | merge waiting

    > w1 looks, holding
    = ok; look at the guards before merge
    ! guard:failed w1, quiet, merge, reasons: lock "main" is held by worker:7, action: block
    ! pipeline:blocked w1, merge, on: guard, reasons: lock "main" is held by worker:7
    ~ blocked by w1 #1 before merge on guard quiet (open): lock "main" is held by worker:7; woken by lock:released, lock:reclaimed, lock:forced | merge waiting

    > lock main is free
    ~ blocked by w1 #1 before merge on guard quiet (open): lock "main" is held by worker:7; woken by lock:released, lock:reclaimed, lock:forced | merge waiting

    > w1 looks
    = ok; acquire lock/trunk and semaphore/agents
    ! guard:passed w1, quiet, merge
    ~ blocked by w1 #1 before merge on guard quiet (open): lock "main" is held by worker:7; woken by lock:released, lock:reclaimed, lock:forced | merge waiting

    > w1 looks, holding
    = ok; begin merge
    ! guard:passed w1, quiet, merge
    ~ blocked by w1 #1 before merge on guard quiet (open): lock "main" is held by worker:7; woken by lock:released, lock:reclaimed, lock:forced | merge waiting

    > w1 begins holding lock/trunk #9
    = ok; run merge
    ! pipeline:resumed w1, merge
    ! pipeline:phase w1, merge, attempt: 1
    ~ running by w1 #1 during merge | merge running
  `;

  story('is asked for again by a driver that takes over while it is waited for', aPipeline(merge))`
    > ann starts it, and w1 drives it, while lock main is free
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; acquire lock/trunk and semaphore/agents
    ! guard:passed w1, quiet, merge
    ~ running by w1 #1 before merge | merge waiting

    > w1 cannot have lock/trunk yet
    = ok; acquire lock/trunk and semaphore/agents
    ! pipeline:blocked w1, merge, on: holds, reasons: waiting for lock/trunk
    ~ blocked by w1 #1 before merge on lock/trunk | merge waiting

    > w2 drives it
    = ok; look at the guards before merge
    ! pipeline:resumed w2, why: a driver took over, token: 2
    ~ running by w2 #2 before merge | merge waiting

    > w1 looks, holding
    = replaced; leave
    ~ running by w2 #2 before merge | merge waiting

    > w2 looks
    = ok; acquire lock/trunk and semaphore/agents
    ! guard:passed w2, quiet, merge
    ~ running by w2 #2 before merge | merge waiting

    > w2 begins holding lock/trunk #9
    = ok; run merge
    ! pipeline:phase w2, merge, attempt: 1
    ~ running by w2 #2 during merge | merge running
  `;

  story('and cannot have fails the phase', aPipeline(merge))`
    > ann starts it, and w1 drives it, while lock main is free
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; acquire lock/trunk and semaphore/agents
    ! guard:passed w1, quiet, merge
    ~ running by w1 #1 before merge | merge waiting

    > w1 is refused semaphore/agents, because "2 wanted, there is 1"
    = ok; leave
    ! pipeline:failed w1, merge, reason: phase merge: 2 wanted, there is 1
    ~ failed before merge: phase merge: 2 wanted, there is 1 | merge failed
  `;

  story(
    'and cannot have now is asked for again, as often as the phase is retried',
    aPipeline({ ...merge, retries: 1 }),
  )`
    > ann starts it, and w1 drives it, while lock main is free
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; acquire lock/trunk and semaphore/agents
    ! guard:passed w1, quiet, merge
    ~ running by w1 #1 before merge | merge waiting

    > w1 cannot have lock/trunk yet
    = ok; acquire lock/trunk and semaphore/agents
    ! pipeline:blocked w1, merge, on: holds, reasons: waiting for lock/trunk
    ~ blocked by w1 #1 before merge on lock/trunk | merge waiting

    > w1 is refused lock/trunk, because "it would deadlock"
    = ok; pause for 1 s
    ! pipeline:blocked w1, merge, on: backoff, reasons: it would deadlock
    ~ blocked by w1 #1 before merge, attempt 2 for 1 s: it would deadlock | merge waiting

    > w1's pause is over
    = ok; look at the guards before merge
    ! pipeline:resumed w1, merge
    ~ running by w1 #1 before merge, attempt 2 | merge waiting

    > w1 looks
    = ok; acquire lock/trunk and semaphore/agents
    ! guard:passed w1, quiet, merge
    ~ running by w1 #1 before merge, attempt 2 | merge waiting

    > w1 is refused lock/trunk, because "it would deadlock"
    = ok; leave
    ! pipeline:failed w1, merge, reason: phase merge: it would deadlock (tried 2 times)
    ~ failed before merge, attempt 2: phase merge: it would deadlock (tried 2 times) | merge failed
  `;

  story(
    'and cannot have is let pass by a phase that may fail: it no longer waits for anything',
    aPipeline({ ...merge, onFailure: 'warn' }, { name: 'deploy' }),
  )`
    > ann starts it, and w1 drives it, while lock main is free
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting, deploy waiting

    > w1 looks
    = ok; acquire lock/trunk and semaphore/agents
    ! guard:passed w1, quiet, merge
    ~ running by w1 #1 before merge | merge waiting, deploy waiting

    > w1 cannot have lock/trunk yet
    = ok; acquire lock/trunk and semaphore/agents
    ! pipeline:blocked w1, merge, on: holds, reasons: waiting for lock/trunk
    ~ blocked by w1 #1 before merge on lock/trunk | merge waiting, deploy waiting

    > w1 is refused lock/trunk, because "it would deadlock"
    = ok; look at the guards before deploy
    ! pipeline:resumed w1, merge
    ~ running by w1 #1 before deploy | merge failed (warned: phase merge: it would deadlock), deploy waiting
  `;

  story('and cannot have is a matter for a person, if the phase says so', aPipeline({ ...merge, onFailure: 'block' }))`
    > ann starts it, and w1 drives it, while lock main is free
    = ok; look at the guards before merge
    ! pipeline:started ann, release
    ~ running by w1 #1 before merge | merge waiting

    > w1 looks
    = ok; acquire lock/trunk and semaphore/agents
    ! guard:passed w1, quiet, merge
    ~ running by w1 #1 before merge | merge waiting

    > w1 is refused lock/trunk, because "it would deadlock"
    = ok; ask a person
    ! pipeline:blocked w1, merge, on: person, reasons: phase merge: it would deadlock. Look, then resume with rerun (run it again) or skip (take it as done), question: 5
    ~ blocked by w1 #1 before merge for a person: phase merge: it would deadlock. Look, then resume with rerun (run it again) or skip (take it as done) | merge failed

    > ann decides through w1: rerun
    = ok; look at the guards before merge
    ! pipeline:resumed ann, why: ann decided: rerun
    ~ running by w1 #1 before merge, attempt 2 | merge waiting
  `;
});

describe('a command that fails', () => {
  story('fails the pipeline', aPipeline({ name: 'build' }, { name: 'deploy' }))`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting, deploy waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running, deploy waiting

    > w1's command fails: exit code 3
    = ok; leave
    ! pipeline:failed w1, build, reason: phase build: exit code 3
    ~ failed during build: phase build: exit code 3 | build failed, deploy waiting

    > w2 drives it
    = over; leave
    ~ failed during build: phase build: exit code 3 | build failed, deploy waiting
  `;

  story(
    'fails the pipeline with a message, if there is one',
    aPipeline({ name: 'build', onFailure: { fail: 'call ann' } }),
  )`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running

    > w1's command fails: exit code 3
    = ok; leave
    ! pipeline:failed w1, build, reason: call ann (phase build: exit code 3)
    ~ failed during build: call ann (phase build: exit code 3) | build failed
  `;

  story(
    'because it took too long has failed like any other',
    aPipeline({ name: 'build', timeoutMs: 600_000, retries: 1 }),
  )`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running

    > w1's command times out after 10 min
    = ok; pause for 1 s
    ! pipeline:blocked w1, build, on: backoff, reasons: timed out after 10 min
    ~ blocked by w1 #1 before build, attempt 2 for 1 s: timed out after 10 min | build waiting

    > w1's pause is over
    = ok; look at the guards before build
    ! pipeline:resumed w1, build
    ~ running by w1 #1 before build, attempt 2 | build waiting

    > w1 begins
    = ok; run build, attempt 2
    ! pipeline:phase w1, build, attempt: 2
    ~ running by w1 #1 during build, attempt 2 | build running, 2 runs

    > w1's command times out after 10 min
    = ok; leave
    ! pipeline:failed w1, build, reason: phase build: timed out after 10 min (tried 2 times)
    ~ failed during build, attempt 2: phase build: timed out after 10 min (tried 2 times) | build failed, 2 runs
  `;

  story(
    'is run again after a pause that doubles, guards first, until its retries are used up',
    aPipeline({ name: 'build', pre: [go], retries: 2, backoffMs: 5_000 }),
  )`
    > ann starts it, and w1 drives it, while file go is there
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting

    > w1 looks
    = ok; begin build
    ! guard:passed w1, go, build
    ~ running by w1 #1 before build | build waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running

    > w1's command fails: exit code 3
    = ok; pause for 5 s
    ! pipeline:blocked w1, build, on: backoff, reasons: exit code 3
    ~ blocked by w1 #1 before build, attempt 2 for 5 s: exit code 3 | build waiting

    # It rests: nothing else is heard.
    > w1 begins
    = misplaced; pause for 5 s
    ~ blocked by w1 #1 before build, attempt 2 for 5 s: exit code 3 | build waiting

    > w1 looks
    = misplaced; pause for 5 s
    ~ blocked by w1 #1 before build, attempt 2 for 5 s: exit code 3 | build waiting

    > w1's pause is over
    = ok; look at the guards before build
    ! pipeline:resumed w1, build
    ~ running by w1 #1 before build, attempt 2 | build waiting

    > file go is not there
    ~ running by w1 #1 before build, attempt 2 | build waiting

    > w1 looks
    = ok; look at the guards before build
    ! guard:failed w1, go, build, reasons: file "go" does not exist, action: block
    ! pipeline:blocked w1, build, on: guard, reasons: file "go" does not exist
    ~ blocked by w1 #1 before build, attempt 2 on guard go (open): file "go" does not exist; woken by looking at file:go | build waiting

    > file go is there
    ~ blocked by w1 #1 before build, attempt 2 on guard go (open): file "go" does not exist; woken by looking at file:go | build waiting

    > w1 looks
    = ok; begin build, attempt 2
    ! guard:passed w1, go, build
    ~ blocked by w1 #1 before build, attempt 2 on guard go (open): file "go" does not exist; woken by looking at file:go | build waiting

    > w1 begins
    = ok; run build, attempt 2
    ! pipeline:resumed w1, build
    ! pipeline:phase w1, build, attempt: 2
    ~ running by w1 #1 during build, attempt 2 | build running, 2 runs

    > w1's command fails: exit code 4
    = ok; pause for 10 s
    ! pipeline:blocked w1, build, on: backoff, reasons: exit code 4
    ~ blocked by w1 #1 before build, attempt 3 for 10 s: exit code 4 | build waiting, 2 runs

    > w1's pause is over
    = ok; look at the guards before build
    ! pipeline:resumed w1, build
    ~ running by w1 #1 before build, attempt 3 | build waiting, 2 runs

    > w1 begins
    = ok; run build, attempt 3
    ! pipeline:phase w1, build, attempt: 3
    ~ running by w1 #1 during build, attempt 3 | build running, 3 runs

    > w1's command fails: exit code 5
    = ok; leave
    ! pipeline:failed w1, build, reason: phase build: exit code 5 (tried 3 times)
    ~ failed during build, attempt 3: phase build: exit code 5 (tried 3 times) | build failed, 3 runs
  `;

  story('and then succeeds is done', aPipeline({ name: 'build', retries: 1 }))`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running

    > w1's command fails: exit code 3
    = ok; pause for 1 s
    ! pipeline:blocked w1, build, on: backoff, reasons: exit code 3
    ~ blocked by w1 #1 before build, attempt 2 for 1 s: exit code 3 | build waiting

    > w1's pause is over
    = ok; look at the guards before build
    ! pipeline:resumed w1, build
    ~ running by w1 #1 before build, attempt 2 | build waiting

    > w1 begins
    = ok; run build, attempt 2
    ! pipeline:phase w1, build, attempt: 2
    ~ running by w1 #1 during build, attempt 2 | build running, 2 runs

    > w1's command succeeds
    = ok; leave
    ! pipeline:done w1
    ~ done | build done, 2 runs
  `;

  story(
    'in a phase that warns is remembered, and the pipeline goes on',
    aPipeline({ name: 'lint', onFailure: 'warn', retries: 1 }, { name: 'deploy' }),
  )`
    > ann starts it, and w1 drives it
    = ok; look at the guards before lint
    ! pipeline:started ann, release
    ~ running by w1 #1 before lint | lint waiting, deploy waiting

    > w1 begins
    = ok; run lint
    ! pipeline:phase w1, lint, attempt: 1
    ~ running by w1 #1 during lint | lint running, deploy waiting

    > w1's command fails: exit code 3
    = ok; pause for 1 s
    ! pipeline:blocked w1, lint, on: backoff, reasons: exit code 3
    ~ blocked by w1 #1 before lint, attempt 2 for 1 s: exit code 3 | lint waiting, deploy waiting

    > w1's pause is over
    = ok; look at the guards before lint
    ! pipeline:resumed w1, lint
    ~ running by w1 #1 before lint, attempt 2 | lint waiting, deploy waiting

    > w1 begins
    = ok; run lint, attempt 2
    ! pipeline:phase w1, lint, attempt: 2
    ~ running by w1 #1 during lint, attempt 2 | lint running, 2 runs, deploy waiting

    > w1's command fails: exit code 3
    = ok; look at the guards before deploy
    ~ running by w1 #1 before deploy | lint failed, 2 runs (warned: phase lint: exit code 3 (tried 2 times)), deploy waiting
  `;

  story(
    'in a phase that warns still has its last guards to pass',
    aPipeline({ name: 'lint', onFailure: 'warn', post: [go] }),
  )`
    > ann starts it, and w1 drives it, while file go is not there
    = ok; look at the guards before lint
    ! pipeline:started ann, release
    ~ running by w1 #1 before lint | lint waiting

    > w1 begins
    = ok; run lint
    ! pipeline:phase w1, lint, attempt: 1
    ~ running by w1 #1 during lint | lint running

    > w1's command fails: exit code 3
    = ok; look at the guards after lint
    ~ running by w1 #1 after lint | lint failed (warned: phase lint: exit code 3)

    > w1 looks
    = ok; look at the guards after lint
    ! guard:failed w1, go, lint, reasons: file "go" does not exist, action: block
    ! pipeline:blocked w1, lint, on: guard, reasons: file "go" does not exist
    ~ blocked by w1 #1 after lint on guard go (open): file "go" does not exist; woken by looking at file:go | lint failed (warned: phase lint: exit code 3)

    > file go is there
    ~ blocked by w1 #1 after lint on guard go (open): file "go" does not exist; woken by looking at file:go | lint failed (warned: phase lint: exit code 3)

    > w1 looks
    = ok; leave
    ! guard:passed w1, go, lint
    ! pipeline:resumed w1, lint
    ! pipeline:done w1
    ~ done | lint failed (warned: phase lint: exit code 3)
  `;

  story(
    'in a phase that blocks waits for a person, who has it run again',
    aPipeline({ name: 'build', onFailure: 'block' }),
  )`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running

    > w1's command fails: exit code 3
    = ok; ask a person
    ! pipeline:blocked w1, build, on: person, reasons: phase build: exit code 3. Look, then resume with rerun (run it again) or skip (take it as done), question: 4
    ~ blocked by w1 #1 before build for a person: phase build: exit code 3. Look, then resume with rerun (run it again) or skip (take it as done) | build failed

    > w1 begins
    = misplaced; ask a person
    ~ blocked by w1 #1 before build for a person: phase build: exit code 3. Look, then resume with rerun (run it again) or skip (take it as done) | build failed

    > w1 looks
    = misplaced; ask a person
    ~ blocked by w1 #1 before build for a person: phase build: exit code 3. Look, then resume with rerun (run it again) or skip (take it as done) | build failed

    > ann decides through w1: rerun
    = ok; look at the guards before build
    ! pipeline:resumed ann, why: ann decided: rerun
    ~ running by w1 #1 before build, attempt 2 | build waiting

    > w1 begins
    = ok; run build, attempt 2
    ! pipeline:phase w1, build, attempt: 2
    ~ running by w1 #1 during build, attempt 2 | build running, 2 runs

    > w1's command fails: exit code 3
    = ok; ask a person
    ! pipeline:blocked w1, build, on: person, reasons: phase build: exit code 3 (tried 2 times). Look, then resume with rerun (run it again) or skip (take it as done), question: 9
    ~ blocked by w1 #1 before build, attempt 2 for a person: phase build: exit code 3 (tried 2 times). Look, then resume with rerun (run it again) or skip (take it as done) | build failed, 2 runs

    # Ben has answered the first question as well, and comes too late: this is another one.
    > ben answers question 4 through w1: rerun
    = answered; ask a person
    ~ blocked by w1 #1 before build, attempt 2 for a person: phase build: exit code 3 (tried 2 times). Look, then resume with rerun (run it again) or skip (take it as done) | build failed, 2 runs

    > ben answers question 10 through w1: skip
    = another-question; ask a person
    ~ blocked by w1 #1 before build, attempt 2 for a person: phase build: exit code 3 (tried 2 times). Look, then resume with rerun (run it again) or skip (take it as done) | build failed, 2 runs

    > ben answers question 9 through w1: skip
    = ok; leave
    ! pipeline:resumed ben, why: ben decided: skip
    ! pipeline:done w1
    ~ done | build skipped, 2 runs
  `;

  story(
    'in a phase that blocks waits for a person, who takes it as done',
    aPipeline({ name: 'build', onFailure: 'block', post: [go] }, { name: 'deploy' }),
  )`
    > ann starts it, and w1 drives it, while file go is there
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting, deploy waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running, deploy waiting

    > w1's command fails: exit code 3
    = ok; ask a person
    ! pipeline:blocked w1, build, on: person, reasons: phase build: exit code 3. Look, then resume with rerun (run it again) or skip (take it as done), question: 5
    ~ blocked by w1 #1 before build for a person: phase build: exit code 3. Look, then resume with rerun (run it again) or skip (take it as done) | build failed, deploy waiting

    > ann decides through w1: skip
    = ok; look at the guards after build
    ! pipeline:resumed ann, why: ann decided: skip
    ~ running by w1 #1 after build | build skipped, deploy waiting

    > w1 looks
    = ok; look at the guards before deploy
    ! guard:passed w1, go, build
    ~ running by w1 #1 before deploy | build skipped, deploy waiting
  `;

  story(
    'in a phase that is retried is run again for ever, always after the same time',
    aPipeline({ name: 'poll', onFailure: { retry: 30_000 }, retries: 1 }),
  )`
    > ann starts it, and w1 drives it
    = ok; look at the guards before poll
    ! pipeline:started ann, release
    ~ running by w1 #1 before poll | poll waiting

    > w1 begins
    = ok; run poll
    ! pipeline:phase w1, poll, attempt: 1
    ~ running by w1 #1 during poll | poll running

    > w1's command fails: exit code 3
    = ok; pause for 1 s
    ! pipeline:blocked w1, poll, on: backoff, reasons: exit code 3
    ~ blocked by w1 #1 before poll, attempt 2 for 1 s: exit code 3 | poll waiting

    > w1's pause is over
    = ok; look at the guards before poll
    ! pipeline:resumed w1, poll
    ~ running by w1 #1 before poll, attempt 2 | poll waiting

    > w1 begins
    = ok; run poll, attempt 2
    ! pipeline:phase w1, poll, attempt: 2
    ~ running by w1 #1 during poll, attempt 2 | poll running, 2 runs

    > w1's command fails: exit code 3
    = ok; pause for 30 s
    ! pipeline:blocked w1, poll, on: backoff, reasons: exit code 3
    ~ blocked by w1 #1 before poll, attempt 3 for 30 s: exit code 3 | poll waiting, 2 runs

    > w1's pause is over
    = ok; look at the guards before poll
    ! pipeline:resumed w1, poll
    ~ running by w1 #1 before poll, attempt 3 | poll waiting, 2 runs

    > w1 begins
    = ok; run poll, attempt 3
    ! pipeline:phase w1, poll, attempt: 3
    ~ running by w1 #1 during poll, attempt 3 | poll running, 3 runs

    > w1's command fails: exit code 3
    = ok; pause for 30 s
    ! pipeline:blocked w1, poll, on: backoff, reasons: exit code 3
    ~ blocked by w1 #1 before poll, attempt 4 for 30 s: exit code 3 | poll waiting, 3 runs

    > w1's pause is over
    = ok; look at the guards before poll
    ! pipeline:resumed w1, poll
    ~ running by w1 #1 before poll, attempt 4 | poll waiting, 3 runs

    > w1 begins
    = ok; run poll, attempt 4
    ! pipeline:phase w1, poll, attempt: 4
    ~ running by w1 #1 during poll, attempt 4 | poll running, 4 runs

    > w1's command succeeds
    = ok; leave
    ! pipeline:done w1
    ~ done | poll done, 4 runs
  `;
});

describe('what a phase passes on', () => {
  const two = aPipeline({ name: 'build' }, { name: 'deploy' });

  story('is there for all after it; what comes later counts', two)`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting, deploy waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running, deploy waiting

    > w1's command succeeds with VERSION=1.2 URL=x
    = ok; look at the guards before deploy
    ~ running by w1 #1 before deploy | build done, deploy waiting | VERSION=1.2 URL=x

    > w1 begins
    = ok; run deploy
    ! pipeline:phase w1, deploy, attempt: 1
    ~ running by w1 #1 during deploy | build done, deploy running | VERSION=1.2 URL=x

    > w1's command succeeds with VERSION=1.3
    = ok; leave
    ! pipeline:done w1
    ~ done | build done, deploy done | VERSION=1.3 URL=x
  `;

  story('is nothing if its command fails', aPipeline({ name: 'build', onFailure: 'warn' }, { name: 'deploy' }))`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting, deploy waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running, deploy waiting

    > w1's command fails: exit code 3
    = ok; look at the guards before deploy
    ~ running by w1 #1 before deploy | build failed (warned: phase build: exit code 3), deploy waiting
  `;

  story('under a name that is ours fails it: the next phase would believe it', two)`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting, deploy waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running, deploy waiting

    > w1's command succeeds with SIGNALBOX_TOKEN=99
    = ok; leave
    ! pipeline:failed w1, build, reason: phase build: its outputs: SIGNALBOX_TOKEN is signalbox's own: names must not begin with SIGNALBOX_
    ~ failed during build: phase build: its outputs: SIGNALBOX_TOKEN is signalbox's own: names must not begin with SIGNALBOX_ | build failed, deploy waiting
  `;

  story('under a name that is none fails it', two)`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting, deploy waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running, deploy waiting

    > w1's command succeeds with A-B=1
    = ok; leave
    ! pipeline:failed w1, build, reason: phase build: its outputs: "A-B" is no name of a variable
    ~ failed during build: phase build: its outputs: "A-B" is no name of a variable | build failed, deploy waiting
  `;

  story('and is too much fails it, with its retries', aPipeline({ name: 'build', retries: 1 }))`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running

    > w1's command succeeds, passing on 30000 letters
    = ok; pause for 1 s
    ! pipeline:blocked w1, build, on: backoff, reasons: its outputs are too large: what all phases pass on must stay below 21845 letters
    ~ blocked by w1 #1 before build, attempt 2 for 1 s: its outputs are too large: what all phases pass on must stay below 21845 letters | build waiting
  `;
});

describe('a driver that dies', () => {
  const phase = { name: 'migrate', pre: [quiet], post: [go] };
  const pipeline = aPipeline(phase, { name: 'deploy' });

  story('before it has done anything is followed by another', pipeline)`
    > ann starts it, and w1 drives it, while lock main is free
    = ok; look at the guards before migrate
    ! pipeline:started ann, release
    ~ running by w1 #1 before migrate | migrate waiting, deploy waiting

    > w2 drives it
    = ok; look at the guards before migrate
    ! pipeline:resumed w2, why: a driver took over, token: 2
    ~ running by w2 #2 before migrate | migrate waiting, deploy waiting

    > w2 looks
    = ok; begin migrate
    ! guard:passed w2, quiet, migrate
    ~ running by w2 #2 before migrate | migrate waiting, deploy waiting

    # The one that died was only slow.
    > w1 looks
    = replaced; leave
    ~ running by w2 #2 before migrate | migrate waiting, deploy waiting

    > w1 begins
    = replaced; leave
    ~ running by w2 #2 before migrate | migrate waiting, deploy waiting

    > w1 drives it with its old token
    = replaced; leave
    ~ running by w2 #2 before migrate | migrate waiting, deploy waiting

    > w2 begins
    = ok; run migrate
    ! pipeline:phase w2, migrate, attempt: 1
    ~ running by w2 #2 during migrate | migrate running, deploy waiting

    > w1 begins
    = replaced; leave
    ~ running by w2 #2 during migrate | migrate running, deploy waiting

    > w1's command succeeds
    = replaced; leave
    ~ running by w2 #2 during migrate | migrate running, deploy waiting
  `;

  story('while a guard blocks is followed by another, which looks again', pipeline)`
    > ann starts it, and w1 drives it, while lock main is held by worker:7
    = ok; look at the guards before migrate
    ! pipeline:started ann, release
    ~ running by w1 #1 before migrate | migrate waiting, deploy waiting

    > w1 looks
    = ok; look at the guards before migrate
    ! guard:failed w1, quiet, migrate, reasons: lock "main" is held by worker:7, action: block
    ! pipeline:blocked w1, migrate, on: guard, reasons: lock "main" is held by worker:7
    ~ blocked by w1 #1 before migrate on guard quiet (open): lock "main" is held by worker:7; woken by lock:released, lock:reclaimed, lock:forced | migrate waiting, deploy waiting

    > w2 drives it
    = ok; look at the guards before migrate
    ! pipeline:resumed w2, why: a driver took over, token: 2
    ~ blocked by w2 #2 before migrate on guard quiet (open): lock "main" is held by worker:7; woken by lock:released, lock:reclaimed, lock:forced | migrate waiting, deploy waiting

    > w2 looks
    = ok; look at the guards before migrate
    ! guard:failed w2, quiet, migrate, reasons: lock "main" is held by worker:7, action: block
    ~ blocked by w2 #2 before migrate on guard quiet (open): lock "main" is held by worker:7; woken by lock:released, lock:reclaimed, lock:forced | migrate waiting, deploy waiting

    > lock main is free
    ~ blocked by w2 #2 before migrate on guard quiet (open): lock "main" is held by worker:7; woken by lock:released, lock:reclaimed, lock:forced | migrate waiting, deploy waiting

    > w2 looks
    = ok; begin migrate
    ! guard:passed w2, quiet, migrate
    ~ blocked by w2 #2 before migrate on guard quiet (open): lock "main" is held by worker:7; woken by lock:released, lock:reclaimed, lock:forced | migrate waiting, deploy waiting
  `;

  story(
    'while its command runs leaves a question, unless the phase is idempotent: nobody knows how far it came',
    pipeline,
  )`
    > ann starts it, and w1 drives it, while lock main is free
    = ok; look at the guards before migrate
    ! pipeline:started ann, release
    ~ running by w1 #1 before migrate | migrate waiting, deploy waiting

    > w1 begins
    = ok; run migrate
    ! pipeline:phase w1, migrate, attempt: 1
    ~ running by w1 #1 during migrate | migrate running, deploy waiting

    > w2 drives it
    = ok; ask a person
    ! pipeline:resumed w2, why: a driver took over, token: 2
    ! pipeline:blocked w2, migrate, on: person, reasons: phase migrate had begun when its driver was lost, and nobody knows how far it came; it is not marked idempotent. Look, then resume with rerun (run it again) or skip (take it as done), question: 5
    ~ blocked by w2 #2 before migrate for a person: phase migrate had begun when its driver was lost, and nobody knows how far it came; it is not marked idempotent. Look, then resume with rerun (run it again) or skip (take it as done) | migrate interrupted, deploy waiting

    > w2 looks
    = misplaced; ask a person
    ~ blocked by w2 #2 before migrate for a person: phase migrate had begun when its driver was lost, and nobody knows how far it came; it is not marked idempotent. Look, then resume with rerun (run it again) or skip (take it as done) | migrate interrupted, deploy waiting

    > w2 begins
    = misplaced; ask a person
    ~ blocked by w2 #2 before migrate for a person: phase migrate had begun when its driver was lost, and nobody knows how far it came; it is not marked idempotent. Look, then resume with rerun (run it again) or skip (take it as done) | migrate interrupted, deploy waiting

    # Whoever comes next is asked too.
    > w3 drives it
    = ok; ask a person
    ! pipeline:resumed w3, why: a driver took over, token: 3
    ~ blocked by w3 #3 before migrate for a person: phase migrate had begun when its driver was lost, and nobody knows how far it came; it is not marked idempotent. Look, then resume with rerun (run it again) or skip (take it as done) | migrate interrupted, deploy waiting

    > w2's command succeeds
    = replaced; leave
    ~ blocked by w3 #3 before migrate for a person: phase migrate had begun when its driver was lost, and nobody knows how far it came; it is not marked idempotent. Look, then resume with rerun (run it again) or skip (take it as done) | migrate interrupted, deploy waiting

    > ann decides through w3: rerun
    = ok; look at the guards before migrate
    ! pipeline:resumed ann, why: ann decided: rerun
    ~ running by w3 #3 before migrate | migrate waiting, deploy waiting

    > w3 looks
    = ok; begin migrate
    ! guard:passed w3, quiet, migrate
    ~ running by w3 #3 before migrate | migrate waiting, deploy waiting

    > w3 begins
    = ok; run migrate
    ! pipeline:phase w3, migrate, attempt: 1
    ~ running by w3 #3 during migrate | migrate running, 2 runs, deploy waiting

    > w3's command succeeds
    = ok; look at the guards after migrate
    ~ running by w3 #3 after migrate | migrate done, 2 runs, deploy waiting
  `;

  story('while its command runs: a person may take it as done, and its last guards are looked at', pipeline)`
    > ann starts it, and w1 drives it, while file go is there
    = ok; look at the guards before migrate
    ! pipeline:started ann, release
    ~ running by w1 #1 before migrate | migrate waiting, deploy waiting

    > w1 begins
    = ok; run migrate
    ! pipeline:phase w1, migrate, attempt: 1
    ~ running by w1 #1 during migrate | migrate running, deploy waiting

    > w2 drives it
    = ok; ask a person
    ! pipeline:resumed w2, why: a driver took over, token: 2
    ! pipeline:blocked w2, migrate, on: person, reasons: phase migrate had begun when its driver was lost, and nobody knows how far it came; it is not marked idempotent. Look, then resume with rerun (run it again) or skip (take it as done), question: 5
    ~ blocked by w2 #2 before migrate for a person: phase migrate had begun when its driver was lost, and nobody knows how far it came; it is not marked idempotent. Look, then resume with rerun (run it again) or skip (take it as done) | migrate interrupted, deploy waiting

    > ann decides through w2: skip
    = ok; look at the guards after migrate
    ! pipeline:resumed ann, why: ann decided: skip
    ~ running by w2 #2 after migrate | migrate skipped, deploy waiting

    > w2 looks
    = ok; look at the guards before deploy
    ! guard:passed w2, go, migrate
    ~ running by w2 #2 before deploy | migrate skipped, deploy waiting
  `;

  story(
    'while the command of an idempotent phase runs is followed by one that runs it again, guards first',
    aPipeline({ ...phase, idempotent: true }),
  )`
    > ann starts it, and w1 drives it, while lock main is free
    = ok; look at the guards before migrate
    ! pipeline:started ann, release
    ~ running by w1 #1 before migrate | migrate waiting

    > w1 begins
    = ok; run migrate
    ! pipeline:phase w1, migrate, attempt: 1
    ~ running by w1 #1 during migrate | migrate running

    > w2 drives it
    = ok; look at the guards before migrate
    ! pipeline:resumed w2, why: a driver took over, token: 2
    ~ running by w2 #2 before migrate | migrate waiting

    > w1's command succeeds
    = replaced; leave
    ~ running by w2 #2 before migrate | migrate waiting

    > w2 looks
    = ok; begin migrate
    ! guard:passed w2, quiet, migrate
    ~ running by w2 #2 before migrate | migrate waiting

    > w2 begins
    = ok; run migrate
    ! pipeline:phase w2, migrate, attempt: 1
    ~ running by w2 #2 during migrate | migrate running, 2 runs

    # It was interrupted and has not failed: it is still its first attempt.
    > w2's command fails: exit code 3
    = ok; leave
    ! pipeline:failed w2, migrate, reason: phase migrate: exit code 3
    ~ failed during migrate: phase migrate: exit code 3 | migrate failed, 2 runs
  `;

  story(
    'during the pause before another attempt is followed by one that pauses too',
    aPipeline({ name: 'build', retries: 1, backoffMs: 5_000 }),
  )`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running

    > w1's command fails: exit code 3
    = ok; pause for 5 s
    ! pipeline:blocked w1, build, on: backoff, reasons: exit code 3
    ~ blocked by w1 #1 before build, attempt 2 for 5 s: exit code 3 | build waiting

    > w2 drives it
    = ok; pause for 5 s
    ! pipeline:resumed w2, why: a driver took over, token: 2
    ~ blocked by w2 #2 before build, attempt 2 for 5 s: exit code 3 | build waiting

    > w1's pause is over
    = replaced; leave
    ~ blocked by w2 #2 before build, attempt 2 for 5 s: exit code 3 | build waiting

    > w2's pause is over
    = ok; look at the guards before build
    ! pipeline:resumed w2, build
    ~ running by w2 #2 before build, attempt 2 | build waiting

    > w2 begins
    = ok; run build, attempt 2
    ! pipeline:phase w2, build, attempt: 2
    ~ running by w2 #2 during build, attempt 2 | build running, 2 runs

    # An interruption is no failure either: now a person is asked, although there are no retries left.
    > w3 drives it
    = ok; ask a person
    ! pipeline:resumed w3, why: a driver took over, token: 3
    ! pipeline:blocked w3, build, on: person, reasons: phase build had begun when its driver was lost, and nobody knows how far it came; it is not marked idempotent. Look, then resume with rerun (run it again) or skip (take it as done), question: 9
    ~ blocked by w3 #3 before build, attempt 2 for a person: phase build had begun when its driver was lost, and nobody knows how far it came; it is not marked idempotent. Look, then resume with rerun (run it again) or skip (take it as done) | build interrupted, 2 runs
  `;

  story('after the command, before the last guards, is followed by one that does not run it again', pipeline)`
    > ann starts it, and w1 drives it, while lock main is free and file go is not there
    = ok; look at the guards before migrate
    ! pipeline:started ann, release
    ~ running by w1 #1 before migrate | migrate waiting, deploy waiting

    > w1 begins
    = ok; run migrate
    ! pipeline:phase w1, migrate, attempt: 1
    ~ running by w1 #1 during migrate | migrate running, deploy waiting

    > w1's command succeeds
    = ok; look at the guards after migrate
    ~ running by w1 #1 after migrate | migrate done, deploy waiting

    > w2 drives it
    = ok; look at the guards after migrate
    ! pipeline:resumed w2, why: a driver took over, token: 2
    ~ running by w2 #2 after migrate | migrate done, deploy waiting

    > w2 looks
    = ok; look at the guards after migrate
    ! guard:failed w2, go, migrate, reasons: file "go" does not exist, action: block
    ! pipeline:blocked w2, migrate, on: guard, reasons: file "go" does not exist
    ~ blocked by w2 #2 after migrate on guard go (open): file "go" does not exist; woken by looking at file:go | migrate done, deploy waiting

    > w3 drives it
    = ok; look at the guards after migrate
    ! pipeline:resumed w3, why: a driver took over, token: 3
    ~ blocked by w3 #3 after migrate on guard go (open): file "go" does not exist; woken by looking at file:go | migrate done, deploy waiting

    > file go is there
    ~ blocked by w3 #3 after migrate on guard go (open): file "go" does not exist; woken by looking at file:go | migrate done, deploy waiting

    > w3 looks
    = ok; look at the guards before deploy
    ! guard:passed w3, go, migrate
    ! pipeline:resumed w3, migrate
    ~ running by w3 #3 before deploy | migrate done, deploy waiting
  `;

  story(
    'between two phases is followed by one that goes on with the second',
    aPipeline({ name: 'build' }, { name: 'deploy' }),
  )`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting, deploy waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running, deploy waiting

    > w1's command succeeds
    = ok; look at the guards before deploy
    ~ running by w1 #1 before deploy | build done, deploy waiting

    > w2 drives it
    = ok; look at the guards before deploy
    ! pipeline:resumed w2, why: a driver took over, token: 2
    ~ running by w2 #2 before deploy | build done, deploy waiting

    > w2 begins
    = ok; run deploy
    ! pipeline:phase w2, deploy, attempt: 1
    ~ running by w2 #2 during deploy | build done, deploy running
  `;

  story('while a person is asked changes nothing', aPipeline({ name: 'build', onFailure: 'block' }))`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running

    > w1's command fails: exit code 3
    = ok; ask a person
    ! pipeline:blocked w1, build, on: person, reasons: phase build: exit code 3. Look, then resume with rerun (run it again) or skip (take it as done), question: 4
    ~ blocked by w1 #1 before build for a person: phase build: exit code 3. Look, then resume with rerun (run it again) or skip (take it as done) | build failed

    > w2 drives it
    = ok; ask a person
    ! pipeline:resumed w2, why: a driver took over, token: 2
    ~ blocked by w2 #2 before build for a person: phase build: exit code 3. Look, then resume with rerun (run it again) or skip (take it as done) | build failed

    > ann decides through w1: rerun
    = replaced; leave
    ~ blocked by w2 #2 before build for a person: phase build: exit code 3. Look, then resume with rerun (run it again) or skip (take it as done) | build failed

    > ann decides through w2: skip
    = ok; leave
    ! pipeline:resumed ann, why: ann decided: skip
    ! pipeline:done w2
    ~ done | build skipped
  `;

  story('that asks twice for the same with the same token is the same driver', aPipeline({ name: 'build' }))`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting

    > w1 drives it with its old token
    = ok; look at the guards before build
    ~ running by w1 #1 before build | build waiting
  `;
});

describe('a driver that is stopped', () => {
  story('ends its command, and leaves a question', aPipeline({ name: 'migrate' }))`
    > ann starts it, and w1 drives it
    = ok; look at the guards before migrate
    ! pipeline:started ann, release
    ~ running by w1 #1 before migrate | migrate waiting

    > w1 begins
    = ok; run migrate
    ! pipeline:phase w1, migrate, attempt: 1
    ~ running by w1 #1 during migrate | migrate running

    > w1 is stopped, and its command with it
    = ok; ask a person
    ! pipeline:blocked w1, migrate, on: person, reasons: phase migrate had begun when its driver was stopped, and nobody knows how far it came; it is not marked idempotent. Look, then resume with rerun (run it again) or skip (take it as done), question: 4
    ~ blocked by w1 #1 before migrate for a person: phase migrate had begun when its driver was stopped, and nobody knows how far it came; it is not marked idempotent. Look, then resume with rerun (run it again) or skip (take it as done) | migrate interrupted

    > w2 drives it
    = ok; ask a person
    ! pipeline:resumed w2, why: a driver took over, token: 2
    ~ blocked by w2 #2 before migrate for a person: phase migrate had begun when its driver was stopped, and nobody knows how far it came; it is not marked idempotent. Look, then resume with rerun (run it again) or skip (take it as done) | migrate interrupted

    > ann decides through w2: rerun
    = ok; look at the guards before migrate
    ! pipeline:resumed ann, why: ann decided: rerun
    ~ running by w2 #2 before migrate | migrate waiting

    > w2 begins
    = ok; run migrate
    ! pipeline:phase w2, migrate, attempt: 1
    ~ running by w2 #2 during migrate | migrate running, 2 runs
  `;

  story('leaves an idempotent phase for the next to run again', aPipeline({ name: 'migrate', idempotent: true }))`
    > ann starts it, and w1 drives it
    = ok; look at the guards before migrate
    ! pipeline:started ann, release
    ~ running by w1 #1 before migrate | migrate waiting

    > w1 begins
    = ok; run migrate
    ! pipeline:phase w1, migrate, attempt: 1
    ~ running by w1 #1 during migrate | migrate running

    > w1 is stopped, and its command with it
    = ok; look at the guards before migrate
    ~ running by w1 #1 before migrate | migrate waiting

    > w2 drives it
    = ok; look at the guards before migrate
    ! pipeline:resumed w2, why: a driver took over, token: 2
    ~ running by w2 #2 before migrate | migrate waiting

    > w2 begins
    = ok; run migrate
    ! pipeline:phase w2, migrate, attempt: 1
    ~ running by w2 #2 during migrate | migrate running, 2 runs
  `;
});

describe('a pipeline that is cancelled', () => {
  story('before anybody drives it has ended', aPipeline({ name: 'build' }))`
    > ann starts it
    = started; look at the guards before build
    ! pipeline:started ann, release
    ~ pending | build waiting

    > ann cancels it, because "a typo"
    = ok; leave
    ! pipeline:cancelled ann, build, reason: a typo
    ~ cancelled before build: a typo | build waiting

    > w1 drives it
    = over; leave
    ~ cancelled before build: a typo | build waiting
  `;

  story('before a phase has ended at once; its driver learns of it', aPipeline({ name: 'build' }))`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting

    > ann cancels it, because "enough"
    = ok; leave
    ! pipeline:cancelled ann, build, reason: enough
    ~ cancelled before build: enough | build waiting

    > w1 begins
    = over; leave
    ~ cancelled before build: enough | build waiting
  `;

  story('while a guard blocks it has ended at once', aPipeline({ name: 'build', pre: [go] }))`
    > ann starts it, and w1 drives it, while file go is not there
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting

    > w1 looks
    = ok; look at the guards before build
    ! guard:failed w1, go, build, reasons: file "go" does not exist, action: block
    ! pipeline:blocked w1, build, on: guard, reasons: file "go" does not exist
    ~ blocked by w1 #1 before build on guard go (open): file "go" does not exist; woken by looking at file:go | build waiting

    > ann cancels it, because "enough"
    = ok; leave
    ! pipeline:cancelled ann, build, reason: enough
    ~ cancelled before build: enough | build waiting

    > w1 looks
    = over; leave
    ~ cancelled before build: enough | build waiting
  `;

  story('while it waits for holds has ended at once', aPipeline({ name: 'build', holds: [{ lock: 'main' }] }))`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting

    > w1 looks
    = ok; acquire lock/main
    ~ running by w1 #1 before build | build waiting

    > w1 cannot have lock/main yet
    = ok; acquire lock/main
    ! pipeline:blocked w1, build, on: holds, reasons: waiting for lock/main
    ~ blocked by w1 #1 before build on lock/main | build waiting

    > ann cancels it, because "enough"
    = ok; leave
    ! pipeline:cancelled ann, build, reason: enough
    ~ cancelled before build: enough | build waiting

    > w1 looks, holding
    = over; leave
    ~ cancelled before build: enough | build waiting
  `;

  story('during a pause has ended at once', aPipeline({ name: 'build', retries: 1 }))`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running

    > w1's command fails: exit code 3
    = ok; pause for 1 s
    ! pipeline:blocked w1, build, on: backoff, reasons: exit code 3
    ~ blocked by w1 #1 before build, attempt 2 for 1 s: exit code 3 | build waiting

    > ann cancels it, because "enough"
    = ok; leave
    ! pipeline:cancelled ann, build, reason: enough
    ~ cancelled before build, attempt 2: enough | build waiting

    > w1's pause is over
    = over; leave
    ~ cancelled before build, attempt 2: enough | build waiting
  `;

  story('while a person is asked has ended at once', aPipeline({ name: 'build' }))`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running

    > w2 drives it
    = ok; ask a person
    ! pipeline:resumed w2, why: a driver took over, token: 2
    ! pipeline:blocked w2, build, on: person, reasons: phase build had begun when its driver was lost, and nobody knows how far it came; it is not marked idempotent. Look, then resume with rerun (run it again) or skip (take it as done), question: 4
    ~ blocked by w2 #2 before build for a person: phase build had begun when its driver was lost, and nobody knows how far it came; it is not marked idempotent. Look, then resume with rerun (run it again) or skip (take it as done) | build interrupted

    > ann cancels it, because "enough"
    = ok; leave
    ! pipeline:cancelled ann, build, reason: enough
    ~ cancelled before build: enough | build interrupted

    > ann decides through w2: rerun
    = over; leave
    ~ cancelled before build: enough | build interrupted
  `;

  story('while it waits for its last guards has ended at once', aPipeline({ name: 'build', post: [go] }))`
    > ann starts it, and w1 drives it, while file go is not there
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running

    > w1's command succeeds
    = ok; look at the guards after build
    ~ running by w1 #1 after build | build done

    > w1 looks
    = ok; look at the guards after build
    ! guard:failed w1, go, build, reasons: file "go" does not exist, action: block
    ! pipeline:blocked w1, build, on: guard, reasons: file "go" does not exist
    ~ blocked by w1 #1 after build on guard go (open): file "go" does not exist; woken by looking at file:go | build done

    > ann cancels it, because "enough"
    = ok; leave
    ! pipeline:cancelled ann, build, reason: enough
    ~ cancelled after build: enough | build done
  `;

  story('while its command runs ends when that has ended', aPipeline({ name: 'build' }, { name: 'deploy' }))`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting, deploy waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running, deploy waiting

    > ann cancels it, because "enough"
    = cancelling; run build
    ! pipeline:cancelling ann, reason: enough
    ~ running by w1 #1 during build | build running, deploy waiting | ann wants it to end

    > bob cancels it, because "me too"
    = cancelling; run build
    ~ running by w1 #1 during build | build running, deploy waiting | ann wants it to end

    > w1's command is cancelled
    = ok; leave
    ! pipeline:cancelled ann, build, reason: enough
    ~ cancelled during build: enough | build cancelled, deploy waiting

    > bob cancels it, because "me too"
    = over; leave
    ~ cancelled during build: enough | build cancelled, deploy waiting
  `;

  story(
    'at the moment when its command succeeds is cancelled all the same',
    aPipeline({ name: 'build' }, { name: 'deploy' }),
  )`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting, deploy waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running, deploy waiting

    > ann cancels it, because "enough"
    = cancelling; run build
    ! pipeline:cancelling ann, reason: enough
    ~ running by w1 #1 during build | build running, deploy waiting | ann wants it to end

    > w1's command succeeds with VERSION=1.2
    = ok; leave
    ! pipeline:cancelled ann, build, reason: enough
    ~ cancelled during build: enough | build cancelled, deploy waiting
  `;

  story('just after its last command succeeded is done', aPipeline({ name: 'build' }))`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running

    > w1's command succeeds
    = ok; leave
    ! pipeline:done w1
    ~ done | build done

    > ann cancels it, because "enough"
    = over; leave
    ~ done | build done
  `;

  story('at the moment when its command fails is not run again', aPipeline({ name: 'build', retries: 3 }))`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running

    > ann cancels it, because "enough"
    = cancelling; run build
    ! pipeline:cancelling ann, reason: enough
    ~ running by w1 #1 during build | build running | ann wants it to end

    > w1's command fails: exit code 3
    = ok; leave
    ! pipeline:cancelled ann, build, reason: enough
    ~ cancelled during build: enough | build cancelled
  `;

  story('at the moment when its driver is stopped asks nobody', aPipeline({ name: 'build' }))`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running

    > ann cancels it, because "enough"
    = cancelling; run build
    ! pipeline:cancelling ann, reason: enough
    ~ running by w1 #1 during build | build running | ann wants it to end

    > w1 is stopped, and its command with it
    = ok; leave
    ! pipeline:cancelled ann, build, reason: enough
    ~ cancelled during build: enough | build cancelled
  `;

  story(
    'while the command of a driver runs that has died ends when another driver takes over',
    aPipeline({ name: 'build', idempotent: true }),
  )`
    > ann starts it, and w1 drives it
    = ok; look at the guards before build
    ! pipeline:started ann, release
    ~ running by w1 #1 before build | build waiting

    > w1 begins
    = ok; run build
    ! pipeline:phase w1, build, attempt: 1
    ~ running by w1 #1 during build | build running

    > ann cancels it, because "enough"
    = cancelling; run build
    ! pipeline:cancelling ann, reason: enough
    ~ running by w1 #1 during build | build running | ann wants it to end

    > w2 drives it
    = ok; leave
    ! pipeline:resumed w2, why: a driver took over, token: 2
    ! pipeline:cancelled ann, build, reason: enough
    ~ cancelled during build: enough | build cancelled
  `;
});
