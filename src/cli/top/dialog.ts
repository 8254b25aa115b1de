/** The question before something is broken: who loses it, who gets it, and what is recorded. */
import type { SurveyedHold } from '../../runtime/observe/survey/index.ts';
import { printable } from '../output.ts';
import { wrapped } from '../pipeline/columns.ts';
import type { Board } from './board.ts';
import type { Page } from './details.ts';
import { age } from './row.ts';
import type { Ui } from './ui.ts';

const MOST_LOSERS = 5;

export function dialogLines({ everything }: Board, { breaking }: Ui, { width, now, paint }: Page): readonly string[] {
  if (breaking === undefined) return [];
  const { resource, token, step, reason, typed } = breaking;
  const survey = everything?.survey;
  const found = [...(survey?.locks ?? []), ...(survey?.semaphores ?? [])].find((one) => one.resource === resource);
  const holds: readonly SurveyedHold[] = found?.holds ?? [];
  const losers = holds.filter((hold) => hold.token <= token);
  const later = holds.length - losers.length;
  const [next] = found?.waiting ?? [];
  const text = (line: string, indent = 0): readonly string[] =>
    wrapped(printable(line), Math.max(12, width - indent)).map((one) => ' '.repeat(indent) + one);
  const cursor = paint('inverse', ' ');
  return [
    paint('bold', printable(`Break ${resource}?`)),
    '',
    ...(losers.length === 0
      ? text('It has changed hands meanwhile: nothing would be broken.')
      : losers.slice(0, MOST_LOSERS).flatMap((hold) => {
          const why = hold.reason === undefined || hold.reason === '' ? '' : `: ${hold.reason}`;
          return text(`${hold.holder} loses it, held for ${age(now - hold.acquiredAt)}, token ${hold.token}${why}`);
        })),
    ...(losers.length > MOST_LOSERS ? text(`and ${losers.length - MOST_LOSERS} more`) : []),
    ...(later > 0 ? text(`${later} that came since keep it`) : []),
    ...text(next === undefined ? 'Nobody waits for it: it will be free.' : `${next.holder} is the next to get it.`),
    ...text('The holders get to see your reason. An event records it; so does the witness, if it is on.'),
    '',
    ...(step === 'reason'
      ? [`Reason: ${printable(reason)}${cursor}`]
      : [`Reason: ${printable(reason)}`, `Type the token ${token} to break it: ${printable(typed)}${cursor}`]),
    '',
    paint(
      'dim',
      step === 'reason' ? 'enter: go on · esc: leave it as it is' : 'enter: break it · esc: leave it as it is',
    ),
  ];
}
