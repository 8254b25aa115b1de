// @ts-check
// node planted-notes.mjs DIRECTORY ENTRY: the first process of a pid namespace of its own. For each case it plants the note of
// a child process in a store, has `signalbox run` take the lock, and prints what came of it as one line of JSON. Were a note
// believed that names this process and its group, everything in the namespace would be ended, and nothing be printed.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readlinkSync } from 'node:fs';
import { open } from 'signalbox';
import { openEmbedded, Value } from 'signalbox/store';

const [directory = '', entry = ''] = process.argv.slice(2);
const NOBODY = 65_534;
const host = {
  boot: readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim(),
  space: readlinkSync('/proc/self/ns/pid'),
  timeSpace: readlinkSync('/proc/self/ns/time'),
};

/** @param {number} pid */
const fieldsOf = (pid) => readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/.*\) /s, '').split(' ');

/** @param {number} pid */
function isAlive(pid) {
  try {
    return !['Z', 'X'].includes(fieldsOf(pid)[0] ?? '');
  } catch {
    return false;
  }
}

/** @param {number} pid */
const noteOf = (pid, leads = true) => ({
  hold: '1.1',
  token: 1,
  holder: 'planted\u001b[2J\u202e',
  lease: '1',
  child: {
    pid,
    leads,
    mark: 'm',
    process: { ...host, pid, start: fieldsOf(pid)[19], ...(leads && { group: true }) },
  },
  graceMs: 1,
  outlivesHold: false,
  at: Date.now(),
});

/** @param {string} lock @param {string[]} args */
async function run(lock, ...args) {
  const child = spawn(process.execPath, [entry, 'run', '--store', `file:${directory}`, '--lock', lock, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (data) => (stdout += data));
  child.stderr.on('data', (data) => (stderr += data));
  const [code] = await once(child, 'close');
  return { code, stdout, stderr };
}

/** @param {string} program @param {string[]} args @param {boolean} detached */
async function start(program, args, detached) {
  const child = spawn(program, args, { detached, stdio: 'ignore' });
  await once(child, 'spawn');
  return child.pid ?? 0;
}

const store = await openEmbedded(directory);
/** @param {string} lock @param {unknown} note */
const plant = (lock, note) =>
  store.transaction({
    compare: [],
    success: [{ do: 'put', key: `c/lock/${lock}/planted`, value: Value.json(note) }],
    failure: [],
  });

const daemon = await start('sleep', ['1000'], true);
const member = await start('sleep', ['1000'], false);
const theirs = await start('setpriv', [`--reuid=${NOBODY}`, '--clear-groups', 'sleep', '1000'], true);
while (!readFileSync(`/proc/${theirs}/status`, 'latin1').includes(`Uid:\t${NOBODY}`)) await new Promise(setImmediate);

/** @type {Record<string, unknown>} */
const told = {};
const own = noteOf(process.pid);
for (const [name, note] of Object.entries({
  'the first process': own,
  'every process': { ...own, child: { ...own.child, pid: -1, process: { ...own.child.process, pid: -1 } } },
  'a path': { ...own, child: { ...own.child, pid: `../../${process.pid}` } },
  'another process': { ...own, child: { ...noteOf(daemon).child, process: own.child.process } },
  nothing: null,
  'no child': { ...own, child: [] },
})) {
  const lock = encodeURIComponent(name);
  await plant(lock, note);
  told[name] = await run(name, '--', 'echo', 'ran');
}

await plant('theirs', noteOf(theirs));
told['theirs'] = await run('theirs', '--wait', '3s', '--', 'echo', 'ran');
await plant('member', noteOf(member));
told['member'] = await run('member', '--wait', '60s', '--', 'echo', 'ran');

// The run is started by a shell that the note names: its own parent.
const shell = spawn(
  'sh',
  ['-c', `read -r go; "$1" "$2" run --store "file:$3" --lock inside -- echo ran 2>&1; echo "code $?"`, 'sh'].concat([
    process.execPath,
    entry,
    directory,
  ]),
  { detached: true, stdio: ['pipe', 'pipe', 'inherit'] },
);
let inside = '';
shell.stdout.on('data', (data) => (inside += data));
await plant('inside', noteOf(shell.pid ?? 0));
shell.stdin.end('\n');
await once(shell, 'close');
told['inside'] = inside;
told['alive'] = [daemon, member, theirs].map(isAlive);

// An orphan that root started as another user is root's to end: it bears the mark.
const killed = spawn(
  process.execPath,
  [entry, 'run', '--store', `file:${directory}`, '--lock', 'orphan', '--ttl', '3s', '--', 'setpriv'].concat([
    `--reuid=${NOBODY}`,
    '--clear-groups',
    'sh',
    '-c',
    'echo $$; exec sleep 1000',
  ]),
  { detached: true, stdio: ['ignore', 'pipe', 'ignore'] },
);
const [line] = await once(killed.stdout, 'data');
killed.kill('SIGKILL');
// Whoever does not look for orphans has the lock as soon as the lease has ended.
const box = await open(`file:${directory}`);
await box.lock('orphan').run(() => undefined);
await box.close();
told['orphan'] = { ...(await run('orphan', '--', 'echo', 'ran')), isAlive: isAlive(Number(line)) };

console.log(JSON.stringify(told));
await store.close();
process.exit(0);
