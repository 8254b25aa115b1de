// A program that reaches the store through `signalbox serve` alone: two servers on one store, of which one is killed in the
// middle. The hold stays, the waiting request keeps its place, and the events go on without a gap. Needs nothing but `fetch`,
// so the same code runs in a browser.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect } from 'signalbox/client';

const dir = mkdtempSync(join(tmpdir(), 'signalbox-over-http-'));
const cli = join(dirname(fileURLToPath(import.meta.resolve('signalbox'))), 'bin', 'signalbox.cjs');
const env = { ...process.env, SIGNALBOX_URL: `file:${join(dir, 'store')}` };
const servers = [await serve(), await serve()];

process.once('exit', () => servers.forEach(({ child }) => child.kill('SIGKILL')));

const token = await printed(['token', 'local']);
const box = connect(
  servers.map(({ url }) => url),
  { token },
);

const seen = [];
const events = box.events('lock:*', { resources: ['lock/main'] });
const reading = (async () => {
  for await (const { type, holder } of events) {
    seen.push(`${type} ${holder}`);
    if (seen.at(-1) === 'lock:released agent:8') return;
  }
})();
while (events.place === undefined) await new Promise((resolve) => setTimeout(resolve, 5));

const first = await box.lock('main').acquire({ holder: 'agent:7', reason: 'pushing' });
const second = new Promise((resolve, reject) => {
  const onWaiting = () => servers[0].child.kill('SIGKILL');
  box.lock('main').acquire({ holder: 'agent:8', onWaiting }).then(resolve, reject);
});
await servers[0].gone;
assert.equal(first.isValid, true);
assert.deepEqual(await first.release(), { kind: 'released' });
const next = await second;
assert.equal(next.token > first.token, true);
await next.release();
await reading;
assert.deepEqual(seen, [
  'lock:acquired agent:7',
  'lock:queued agent:8',
  'lock:released agent:7',
  'lock:acquired agent:8',
  'lock:released agent:8',
]);

await box.tasks.publish('build-7', { commit: '1a2b3c' });
const claim = await box.tasks.claimNext({ holder: 'worker:1' });
await claim.complete({ image: 'app:7' });
assert.equal(await box.tasks.status('build-7'), 'complete');

await box.close();
servers[1].child.kill('SIGTERM');
await servers[1].gone;
rmSync(dir, { recursive: true, force: true });
console.log('one server was killed, and nothing was lost');

async function serve() {
  const child = spawn(process.execPath, [cli, 'serve', '--port', '0', '--json'], { env });
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.stdout.setEncoding('utf8');
  let text = '';
  for await (const part of child.stdout) {
    text += part;
    if (text.includes('\n')) break;
  }
  return { child, gone, url: JSON.parse(text).url };
}

async function printed(args) {
  const child = spawn(process.execPath, [cli, ...args], { env });
  let text = '';
  for await (const part of child.stdout.setEncoding('utf8')) text += part;
  return text.trim();
}
