/** `signalbox witness proof`: writes a proof that one entry is in the record, and checks it without the record. */
import type { Command } from '../command.ts';
import {
  type Checkpoint,
  entryProblem,
  type InclusionProof,
  proofOf,
  proofProblem,
  Verifier,
  type WitnessEntry,
} from '../../core/index.ts';
import { sha256 } from '../../host/index.ts';
import { readBytes } from '../document-file.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { interruptible } from '../interrupt.ts';
import { print, printable, printJson } from '../output.ts';
import { addTrustOptions, type TrustFlags, trustOf } from './trust.ts';
import { readInto, tellResult } from './verify.ts';

export function proof(command: Command): void {
  command
    .about(`prove that one entry is in the record

Examples:
  signalbox witness proof create lock/main 17 --from record.jsonl > proof.json
  signalbox witness proof check proof.json --key witness.key.pub`)
    .subcommands({ create, check });
}

function create(command: Command): void {
  command
    .about(`write the proof of one entry to stdout

Example:
  signalbox witness proof create lock/main 17 --from record.jsonl > proof.json

A checkpoint must cover the entry. The proof has the entry, some hashes and the checkpoint, and nothing of the
other entries. Exit code 65 if the export is not whole, 1 if there is no such entry, or no checkpoint covers it.`)
    .argument('<resource>', 'the chain of the entry, such as lock/main')
    .argument('<seq>', 'the number of the entry in its chain')
    .requiredOption('--from <file>', 'an export that has the entry; - is stdin')
    .action((resource: string, seq: string, { from }: { from: string }) => prove(command, resource, seq, from));
}

function check(command: Command): void {
  addTrustOptions(command)
    .argument('<file>', 'what proof create wrote; - is stdin')
    .about(`check a proof; needs neither the store nor the record

Examples:
  signalbox witness proof check proof.json --key witness.key.pub
  signalbox witness proof check proof.json --anchor anchors.jsonl --json

Without --key and --anchor it only says that entry and checkpoint belong together. Exit code 65 if they do not.`)
    .action((file: string, flags: TrustFlags) => checkProof(command, file, flags));
}

async function prove(command: Command, resource: string, given: string, from: string): Promise<void> {
  const seq = Number(given);
  if (!Number.isSafeInteger(seq) || seq < 1)
    throw new CliExit(EXIT.usage, `seq is ${given}; expected the number of an entry, from 1`);
  const checkpoints: Checkpoint[] = [];
  const chain: WitnessEntry[] = [];
  const collect = (line: string): void => {
    if (line.includes('"kind":"checkpoint"') || line.includes(JSON.stringify(resource))) gather(line);
  };
  const gather = (text: string): void => {
    const { kind, ...rest } = JSON.parse(text) as { readonly kind: string; readonly resource?: string };
    if (kind === 'checkpoint') checkpoints.push(rest as unknown as Checkpoint);
    const isOfChain = kind === 'entry' && rest.resource === resource && entryProblem(rest) === undefined;
    if (isOfChain) chain.push(rest as unknown as WitnessEntry);
  };
  const verifier = new Verifier({ digest: sha256 });
  const result = await interruptible((signal) => readInto(verifier, from, signal, collect));
  if (result.finding !== undefined) return tellResult(command, result);
  const entry = chain.find((one) => one.seq === seq);
  if (entry === undefined) throw new CliExit(EXIT.no, `the export has no entry ${seq} of ${printable(resource)}`);
  const hashes = chain.map(({ hash }) => hash);
  const proving = proofOf(entry, { first: chain[0]?.seq ?? 1, hashes }, checkpoints, sha256);
  if ('problem' in proving)
    throw new CliExit(EXIT.no, `${printable(proving.problem)}\n  make one first: signalbox witness checkpoint`);
  printJson(proving.proof);
}

async function checkProof(command: Command, file: string, flags: TrustFlags): Promise<void> {
  const trust = await trustOf(flags);
  const bytes = await readBytes(file);
  if (typeof bytes === 'string') throw new CliExit(EXIT.usage, `${file}: ${bytes}`);
  const given = parsed(Buffer.from(bytes).toString('utf8'));
  const problem = proofProblem(given, sha256, trust);
  if (problem !== undefined) {
    if (command.isJson) printJson({ ok: false, why: problem });
    throw new CliExit(EXIT.integrity, command.isJson ? '' : `the proof does not hold: ${printable(problem)}`);
  }
  const { entry, checkpoint } = given as InclusionProof;
  if (command.isJson) return printJson({ ok: true, entry, checkpoint });
  const when = new Date(checkpoint.time).toISOString();
  print(printable(`good: entry ${entry.seq} of ${entry.resource} is in checkpoint ${checkpoint.number} of ${when}`));
  for (const { actor, command: asked, outcome } of entry.commands) print(printable(`  ${actor}: ${asked}: ${outcome}`));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
