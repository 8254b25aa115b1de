// A release in three phases: a command builds, a function publishes, a command announces. Nothing may be published while
// an incident is open, and the driver is stopped while it waits for that. Another one goes on from there, and
// nothing is built twice.

import assert from 'node:assert/strict';
import { defineRunbook, lockFree, open } from 'signalbox';

const published = [];

const release = defineRunbook({
  name: 'release',
  env: { TARGET: 'staging' },
  phases: [
    { name: 'build', run: 'echo "built 1.4"; echo "VERSION=1.4" >> "$SIGNALBOX_OUTPUT"' },
    {
      name: 'publish',
      pre: { id: 'quiet', condition: lockFree('incident') },
      holds: { locks: 'registry' },
      run({ env, outputs, token, tokens, log }) {
        published.push({ version: outputs.VERSION, token, registry: tokens['lock/registry'] });
        log(`published ${env.VERSION} on ${env.TARGET}`);
        return { ADDRESS: `${env.TARGET}/${env.VERSION}` };
      },
    },
    {
      name: 'announce',
      pre: { command: { cmd: 'test -n "$ADDRESS"', description: 'there is something to announce' } },
      run: 'echo "version $VERSION is at $ADDRESS"',
    },
  ],
});

const box = await open('memory:');
const incident = await box.lock('incident').acquire({ holder: 'worker:7', reason: 'the disk is full' });

// The first driver gets as far as the incident lets it, and is stopped there.
const stop = new AbortController();
const first = await box.pipelines.run(release, {
  id: 'release-7',
  signal: stop.signal,
  onChange({ blocked }) {
    if (blocked?.on !== 'guard') return;
    for (const { id, reasons } of blocked.guards) console.log(`blocked by ${id}: ${reasons.join('; ')}`);
    stop.abort();
  },
});
assert.equal(first.record.state, 'blocked');
assert.deepEqual(first.record.outputs, { VERSION: '1.4' });
assert.deepEqual(published, []);

// The second finds all that was written: how far it is, what was passed on, and the runbook. Only functions it has to bring.
await incident.release();
const second = await box.pipelines.resume('release-7', { functions: release.functions });
assert.equal(second.record.state, 'done');
assert.deepEqual(second.record.outputs, { VERSION: '1.4', ADDRESS: 'staging/1.4' });
assert.deepEqual(
  second.record.phases.map(({ name, runs }) => [name, runs]),
  [
    ['build', 1],
    ['publish', 1],
    ['announce', 1],
  ],
  'each phase ran once',
);
assert(published[0].token > first.record.lastToken, 'the second driver has a larger token than the first');
for (const { phase, text } of await box.pipelines.logs('release-7')) console.log(`${phase}: ${text.trim()}`);

// It is over, and its id is taken until it is forgotten.
assert.equal((await box.pipelines.run(release, { id: 'release-7' })).kind, 'exists');
assert.equal(await box.pipelines.forget('release-7'), true);
await box.close();
