/**
 * How long does a lock lie idle between two processes of one machine, and how often can it change hands?
 *
 *     handoff      each holds it for 15 ms and then pauses for 12, so that another always waits, and the last holder
 *                  does not get in ahead of processes that poll every 10 ms. From the release until the first waiting
 *                  process is let in.
 *     handoffs/s   nobody holds or pauses: how often it goes from one process to another.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Fleet } from './measure/fleet.mjs';
import { machine } from './measure/machine.mjs';
import { startRedis } from './measure/redis.mjs';
import { median, quantile, spread } from './measure/rounds.mjs';

const SIZES = [2, 8, 32];
const ROUNDS = 3;
const TO_HAND_OVER = { ms: 1200, holdMs: 15, pauseMs: 12 };
/** It looks again after 1 s, and then after 2: in less time it would look as if it did so never. */
const LONGER = { 'proper-lockfile': { ms: 4000 } };
const AS_FAST_AS_POSSIBLE = { ms: 700, holdMs: 0, pauseMs: 0 };

const redis = await startRedis();
const names = [
  'signalbox',
  ...(redis === undefined ? [] : ['redis-semaphore']),
  ...(spawnSync('flock', ['--version']).error === undefined ? ['flock'] : []),
  'proper-lockfile',
];
console.log(machine());
const measured = [];
try {
  for (const size of SIZES) measured.push({ size, ...(await measure(size)) });
} finally {
  await redis?.stop();
}
handoffRows();
throughputRows();

/** With as many processes as are asked about, and no others that have the store open and could be disturbed. */
async function measure(size) {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-bench-'));
  const fleet = new Fleet(size, { directory, redisPort: redis?.port });
  try {
    for (const name of names) await fleet.open(name);
    return {
      handovers: await inRounds(fleet, TO_HAND_OVER, LONGER),
      races: await inRounds(fleet, AS_FAST_AS_POSSIBLE),
    };
  } finally {
    await fleet.close();
    rmSync(directory, { recursive: true });
  }
}

function handoffRows() {
  console.log('handoff, ms: p50 (lowest–highest of the rounds), p95');
  for (const { size, handovers } of measured) {
    const p50 = (name) => handovers[name].map(({ handoffs }) => quantile(handoffs, 0.5));
    const told = names.map((name) => {
      const p95 = median(handovers[name].map(({ handoffs }) => quantile(handoffs, 0.95)));
      return `${name} ${spread(p50(name), 2)}, ${p95.toFixed(2)}`;
    });
    console.log(`  ${size} processes`.padEnd(16) + told.join(' | ') + overlapsIn(handovers));
    const times = (peer) => median(p50('signalbox').map((ours, i) => ours / p50(peer)[i]));
    const goals = { 'redis-semaphore': 'goal ≤ 0.3', flock: 'no goal', 'proper-lockfile': 'goal ≤ 0.02' };
    const ratios = names.slice(1).map((peer) => `${times(peer).toFixed(4)} × ${peer} (${goals[peer]})`);
    console.log(`${' '.repeat(16)}signalbox takes ${ratios.join(', ')}`);
  }
}

function throughputRows() {
  console.log(
    'handoffs/s: median (lowest–highest of the rounds); in brackets all turns, also of the same process again',
  );
  for (const { size, races } of measured) {
    const told = names.map((name) => {
      const perSecond = races[name].map((round) => round.perSecond);
      const turns = median(races[name].map((round) => (1000 * round.turns) / AS_FAST_AS_POSSIBLE.ms));
      return `${name} ${spread(perSecond, 0)} [${turns.toFixed(0)}]`;
    });
    console.log(`  ${size} processes`.padEnd(16) + told.join(' | ') + overlapsIn(races));
  }
  const [few, many] = [measured[0], measured.at(-1)];
  const kept = (of) => (median(many.races.signalbox.map(of)) / median(few.races.signalbox.map(of))).toFixed(2);
  console.log(
    `${' '.repeat(16)}signalbox with ${many.size} has ${kept((round) => round.perSecond)} × the handoffs it has with ` +
      `${few.size} (goal > 0.5), and ${kept((round) => round.turns)} × the turns`,
  );
}

/** All of them in every round, and who begins changes: what else the machine does then falls on all of them alike. */
async function inRounds(fleet, how, differently = {}) {
  const rounds = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      rounds[name].push(await fleet.run(name, { ...how, ...differently[name] }));
    }
  }
  return rounds;
}

function overlapsIn(rounds) {
  const guilty = names.filter((name) => rounds[name].some(({ overlaps }) => overlaps > 0));
  return guilty.length === 0 ? '' : `  !! two had it at once: ${guilty.join(', ')}`;
}
