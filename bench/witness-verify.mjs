/**
 * How many entries of a record can be verified in a second, compared with only parsing and hashing the same lines? The goal is half.
 * Both in turn, in the same run, with the same function; medians. Seconds are those of the processor, which a busy machine changes less.
 */
import { hash } from 'node:crypto';
import {
  coveredHead,
  emptyChain,
  endLine,
  entryLine,
  headerLine,
  nextCheckpoint,
  checkpointLine,
  nextEntry,
  Verifier,
} from 'signalbox/core';
import { machine } from './measure/machine.mjs';
import { median, spread } from './measure/rounds.mjs';

const CHAINS = 100;
const ENTRIES = 20_000;
const ROUNDS = process.argv.includes('--quick') ? 5 : 15;

const digest = (/** @type {string} */ text) => hash('sha256', text, 'hex');

console.log(machine());
for (const isCovered of [false, true]) {
  const lines = record(isCovered);
  const bytes = lines.reduce((sum, line) => sum + line.length, 0) / ENTRIES;
  const [bare, verified] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    bare.push(perSecond(() => lines.forEach((line) => [JSON.parse(line), digest(line)])));
    verified.push(perSecond(() => verify(lines)));
  }
  const ratio = verified.map((rate, round) => rate / bare[round]);
  console.log(
    `verify, ${isCovered ? 'with' : 'without'} a checkpoint: ${Math.round(median(verified))} entries/s of ${Math.round(bytes)} bytes; ` +
      `parse and hash ${Math.round(median(bare))}/s; ratio ${spread(ratio, 2)}`,
  );
}

function perSecond(/** @type {() => void} */ work) {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (ENTRIES * 1_000_000) / (user + system);
}

function verify(/** @type {readonly string[]} */ lines) {
  const verifier = new Verifier({ digest });
  for (const line of lines) verifier.line(line);
  const { finding } = verifier.finish();
  if (finding !== undefined) throw new Error(finding.why);
}

function record(/** @type {boolean} */ isCovered) {
  const heads = [];
  const entries = [];
  const covered = [];
  for (let chain = 0; chain < CHAINS; chain++) {
    let head = emptyChain(`lock/branch-${chain}`);
    const hashes = [];
    for (let i = 0; i < ENTRIES / CHAINS; i++) {
      const asked = i % 2 === 0 ? ['acquire', 'acquired'] : ['release', 'released'];
      const command = { actor: `agent:${i % 7}`, component: 'lock', command: asked[0] ?? '', outcome: asked[1] ?? '' };
      const commands = [{ ...command, events: [`lock:${asked[1]}`], waitedMs: i, detail: { reason: 'merge' } }];
      const next = nextEntry(head, { revision: chain * 1000 + i, time: 1_760_000_000_000 + i, commands }, digest);
      head = next.head;
      hashes.push(head.hash);
      entries.push(entryLine(next.entry));
    }
    heads.push(head);
    covered.push(coveredHead(head, 1, hashes, digest));
  }
  const checkpoint = isCovered ? nextCheckpoint(undefined, covered, 1_770_000_000_000, digest) : undefined;
  const newest = checkpoint && { checkpoint: { number: checkpoint.number, hash: checkpoint.hash } };
  return [
    headerLine({ v: 1, time: 1_770_000_000_000, by: 'signalbox bench' }, digest),
    ...(checkpoint ? [checkpointLine(checkpoint)] : []),
    ...entries,
    endLine({ heads, entries: entries.length, checkpoints: checkpoint ? 1 : 0, ...newest }, digest),
  ];
}
