/** `signalbox who`: who holds what, since when, why, and who waits for whom. */
import type { Command } from 'commander';
import { paintFor, print, printJson } from './output.ts';
import { resourceArgument } from './arguments.ts';
import { isJson, withBox } from './store.ts';
import { surveyJson } from './survey-json.ts';
import { layoutFor } from './table.ts';
import { whoLines } from './who-table.ts';

const EXAMPLES = `
Examples:
  signalbox who
  signalbox who lock/main-branch
  signalbox who --json | jq '.locks[] | select(.waiting | length > 3) | .name'

States of a hold:
  renewed        its lease was renewed in time
  overdue        its process should have renewed it by now; the lease still runs
  slow           it is renewed, but past its --max-hold: stale
  silent         its lease has ended, nothing is heard of it: stale
  process gone   its process ran on this machine and has ended; its lease follows`;

export function define(command: Command): void {
  command
    .argument('[resource]', 'only this one: lock/NAME or semaphore/NAME', resourceArgument)
    .addHelpText('after', EXAMPLES)
    .action(async (resource: ReturnType<typeof resourceArgument> | undefined) => {
      const survey = await withBox(command, (box) => box.survey(resource === undefined ? {} : { resource }));
      if (isJson(command)) return printJson(surveyJson(survey));
      for (const line of whoLines(survey, layoutFor(process.stdout, paintFor(process.stdout)))) print(line);
    });
}
