// @ts-check
// node filer.mjs TRACKER NAME COUNT: adds COUNT issues to a tracker, and marks each of them as its own and done. Prints the
// id of each that was confirmed.

import { openTracker } from 'signalbox';

const [path = '', name = '', count = ''] = process.argv.slice(2);
const tracker = openTracker(path);
for (let number = 0; number < Number(count); number++) {
  const { issue } = await tracker.add({ title: `${name} ${number}` });
  await tracker.update(issue.id, { status: 'done', assignee: name });
  process.stdout.write(`${issue.id}\n`);
}
