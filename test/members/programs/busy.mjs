// @ts-check
// node busy.mjs STORE DIRECTORY: has a task, and drives a pipeline whose command does not end by itself, until it is killed.

import { defineRunbook, open } from 'signalbox';

const [url = '', cwd = ''] = process.argv.slice(2);
const box = await open(url, { sessionTtlMs: 4000, maintains: false });
await box.tasks.claim('job', { holder: 'busy' });
const run = 'echo $SIGNALBOX_ATTEMPT >> did; test -e again && exit 0; touch again; exec sleep 1000';
const runbook = defineRunbook({ name: 'p', phases: [{ name: 'work', run, idempotent: true }] });
await box.pipelines.run(runbook, { id: 'p', cwd, graceMs: 30_000 });
