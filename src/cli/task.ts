/** `signalbox task …`: publishes and claims tasks by hand, for scripts and agents. */
import type { Command } from './command.ts';
import { claim } from './task/claim.ts';
import { complete, fail, release, renew } from './task/ending.ts';
import { configure, forget, requeue, retry } from './task/unclaimed.ts';
import { list, show } from './task/show.ts';
import { publish } from './task/publish.ts';
import { run } from './task/run.ts';
import { watch } from './task/watch.ts';
import { work } from './task/work.ts';

const EXAMPLES = `
Examples:
  signalbox task publish build-7 --data '{"commit":"1a2b3c"}' --priority 5
  signalbox task work --jobs 2 -- ./build.sh          a worker: runs this for one task after another
  signalbox task run build-7 -- ./build.sh            the same for one task
  signalbox task list --status failed
  signalbox task retry build-7

By hand, where a command cannot do the work:
  TOKEN=$(signalbox task claim build-7 --holder agent:7 --ttl 5m)
  signalbox task renew build-7 --token "$TOKEN"
  signalbox task complete build-7 --token "$TOKEN" --result '{"image":"app:7"}'

Of any number of claimers exactly one gets a task. If a claim is not renewed in time, the task is pending again; task
run and task work renew it by themselves.`;

export function define(command: Command): void {
  command.addHelpText('after', EXAMPLES).subcommands({
    ...{ publish, run, work, claim, renew, release, complete, fail },
    ...{ retry, requeue, forget, configure, show, list, watch },
  });
}
