// A tour in one process: workers that share a lock, jobs that share a semaphore, and a holder that stays too long. It is made of the public interface only; the table is what any subscriber of events can print.

import { setTimeout as sleep } from 'node:timers/promises';
import { agentHolder, jobHolder, open, workerHolder } from 'signalbox';

const inColour = process.stdout.isTTY === true && process.env['NO_COLOR'] === undefined;
const bold = paint(1);
const dim = paint(2);
const red = paint(31);
const green = paint(32);
const yellow = paint(33);

const begun = performance.now();
const opened = [];
// A worker that is interrupted releases what it holds, and says so.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void stop(signal));

console.log(`
${bold('signalbox')} keeps workers from stepping on each other. The events of the store show who gets in, waits and leaves,
as any subscriber hears them. Each worker opens the store by itself, the way separate programs would.`);
const watcher = await join();
await oneAtATime();
await aFewAtATime();
await tooLong();
for (const box of opened) await box.close();
whatNext();

async function oneAtATime() {
  title('1. A lock: four workers want to merge into one branch.', [
    'One has it at a time. The others wait in the order in which they came, and each gets in the moment',
    'the one before it leaves. Every grant has a token, larger than all before it.',
  ]);
  const table = await watch('lock/main-branch', 'held by', 12, names);
  const merges = ['1', '2', '3', '4'].map(async (id) => {
    const box = await join();
    await box.lock('main-branch').run(() => sleep(450), { holder: workerHolder(id), reason: `merging change ${id}` });
  });
  await Promise.all(merges);
  await table.end();
}

async function aFewAtATime() {
  title('2. A semaphore: builds share four slots of a machine.', [
    'job:app takes three of them, job:web wants two. job:lint would fit into the one that job:docs leaves,',
    'but does not pass job:web, which came first: many light jobs cannot keep a heavy one out.',
  ]);
  const table = await watch('semaphore/builds', 'slots 0 to 3', 22, slots);
  const box = await join();
  const builds = box.semaphore('builds', { capacity: 4 });
  const build = (id, weight, forMs) => builds.run(() => sleep(forMs), { holder: jobHolder(id), weight });
  await Promise.all([build('docs', 1, 600), build('app', 3, 1200), build('web', 2, 700), build('lint', 1, 400)]);
  await table.end();
}

async function tooLong() {
  title('3. A hold that ends: an agent may deploy for one second, and takes longer.', [
    'Its abort signal fires, and only then the next one gets in. This one does not listen and',
    'writes all the same; but the server it writes to compares tokens, and turns it away.',
  ]);
  const table = await watch('lock/deploy', 'held by', 12, names);
  const slow = await join();
  const next = await join();
  const server = newServer();

  const hold = await slow.lock('deploy').acquire({ holder: agentHolder('slow'), maxHoldMs: 1000 });
  hold.signal.addEventListener('abort', () => say(hold.holder, red('hears'), hold.signal.reason.message));
  const waiting = next.lock('deploy').run(
    async ({ holder, token }) => {
      await sleep(200);
      say(holder, 'writes', server.write(token));
      await sleep(700);
    },
    { holder: agentHolder('next') },
  );
  await sleep(1600);
  say(hold.holder, 'writes late', server.write(hold.token));
  await waiting;
  await table.end();
}

/** What a lock protects has to look at the token itself: it alone knows what it has already seen. */
function newServer() {
  let highest = 0;
  return {
    write(token) {
      if (token < highest) return red(`refused: token ${token} is older than ${highest}`);
      highest = token;
      return green(`accepted: token ${token} is the newest`);
    },
  };
}

/** Each worker opens the store by itself, as separate programs would. */
async function join() {
  const box = await open('memory:demo');
  opened.push(box);
  return box;
}

/** A row for each event of a resource: what happened, who has it now, and who waits. */
async function watch(resource, held, width, showHolds) {
  const holds = new Map();
  const waiting = [];
  let allGone = () => {};
  console.log(dim(`    time   ${pad('who', 12)}${pad('what', 14)}${pad('', 11)}${pad(held, width)}waiting, in order`));
  const subscription = await watcher.on('*', (event) => {
    if (event.resource !== resource) return;
    const kind = event.type.slice(event.type.indexOf(':') + 1);
    if (kind === 'queued') waiting.push(event.holder);
    else if (kind === 'acquired') {
      if (waiting.includes(event.holder)) waiting.splice(waiting.indexOf(event.holder), 1);
      holds.set(event.holder, event);
    } else holds.delete(event.holder);
    const token = kind === 'acquired' ? `token ${event.token}` : '';
    say(event.holder, told(kind), pad(token, 11) + pad(showHolds([...holds.values()]), width) + waiting.join(' '));
    if (holds.size + waiting.length === 0) allGone();
  });
  return {
    /** Everyone has gone, and that was printed. */
    async end() {
      if (holds.size + waiting.length > 0) await new Promise((resolve) => (allGone = resolve));
      subscription.unsubscribe();
    },
  };
}

function names(holds) {
  return holds.map(({ holder }) => holder).join(' ') || dim('–');
}

function slots(holds) {
  const row = ['·', '·', '·', '·'];
  for (const { holder, slots } of holds) for (const slot of slots) row[slot] = holder.slice('job:'.length);
  return row.map((slot) => slot.padEnd(5)).join('');
}

function told(kind) {
  const words = {
    queued: yellow('waits'),
    acquired: green('gets in'),
    released: 'leaves',
    reclaimed: red('is put out'),
  };
  return words[kind] ?? kind;
}

function say(who, what, more) {
  const seconds = ((performance.now() - begun) / 1000).toFixed(2).padStart(6);
  console.log(`${dim(`${seconds} s`)}   ${pad(who, 12)}${pad(what, 14)}${more}`.trimEnd());
}

function title(text, lines) {
  console.log(`\n${bold(text)}`);
  for (const each of lines) console.log(`   ${each}`);
  console.log();
}

function pad(text, width) {
  return text + ' '.repeat(Math.max(1, width - plain(text).length));
}

function plain(text) {
  return text.replace(/\x1b\[\d+m/g, '');
}

function paint(code) {
  return (text) => (inColour ? `\x1b[${code}m${text}\x1b[0m` : text);
}

function whatNext() {
  console.log(`
${bold('What to try next')}
   npm install --global .                      then, in two shells at once:
   signalbox run --lock demo -- sleep 10       one of them waits, and says for whom
   signalbox who                               who holds what, since when, why, and who waits
   docs/agents.md                              three agents, three worktrees, merges one after the other
   README.md                                   the same in a few lines each, to copy from
   npm start                                   the page that shows all of it, on the store of this clone
   npm run demo                                the same with a fleet of processes, some of which crash
   node examples/fenced-writes.mjs             stories that check themselves; there are more beside it
   npm run simulate -- --seed 42 --trace       processes that crash and stall, step by step, again the same
   ARCHITECTURE.md                             what happens between acquire and the hold`);
}

async function stop(signal) {
  console.log('\nInterrupted: what was held is released.');
  // Those who still wait are refused now, and what they say about it is of no interest any more.
  process.on('unhandledRejection', () => {});
  process.on('uncaughtException', () => {});
  console.log = () => {};
  await Promise.allSettled(opened.map((box) => box.close()));
  process.exit(signal === 'SIGINT' ? 130 : 143);
}
