/** `signalbox witness checkpoint|trim|configure`: seals the record, trims it, and sets its limits. */
import { readFileSync } from 'node:fs';
import type { Command } from '../command.ts';
import { anchorAt } from '../../adapters/index.ts';
import type { Checkpoint, Signer } from '../../core/index.ts';
import { signerWith } from '../../host/index.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import type { WitnessRetention } from '../../runtime/witness/retention.ts';
import { given, numberArgument } from '../arguments.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { print, printJson } from '../output.ts';
import { exportTo } from './segment.ts';

interface SealFlags {
  readonly sign?: string;
  readonly anchor?: string;
}

function addSealOptions(command: Command): Command {
  return command
    .option('--sign <file>', 'sign the checkpoint with this private key, made by `witness key create`')
    .option('--anchor <place>', 'keep the checkpoint there too: a file, git:REF or command:COMMAND');
}

export function checkpoint(command: Command): void {
  addSealOptions(command.description('check the new entries of the record, and seal it up to now'))
    .addHelpText('after', '\nExamples:\n  signalbox witness checkpoint --sign witness.key --anchor anchors.jsonl')
    .inRecord(async ({ box }, flags: SealFlags) => {
      const made = await seal(box, flags);
      command.answer(made, `checkpoint ${made.number}: ${made.entries} entries of ${made.chains} chains, ${made.hash}`);
    });
}

async function seal(box: Signalbox, { sign, anchor }: SealFlags): Promise<Checkpoint> {
  const signer = sign === undefined ? {} : { sign: signerFrom(sign) };
  const { heads: _heads, ...made } = await box.witness.checkpoint(signer);
  if (anchor !== undefined) await anchorAt(anchor, { cwd: process.cwd(), env: process.env }).keep(made);
  return made;
}

export function trim(command: Command): void {
  addSealOptions(command)
    .option('--to <file>', 'where to export it first; packed with gzip if it ends in .gz')
    .option('--without-export', 'delete without making a copy')
    .about(`seal the record, export it, and delete the entries that the new checkpoint covers

Examples:
  signalbox witness trim --to record-2026-11.jsonl.gz
  signalbox witness trim --to record-2026-11.jsonl.gz --sign witness.key --anchor anchors.jsonl

What is entered after the checkpoint stays. Sign the checkpoint if you verify with --key: what was trimmed must be
covered by a checkpoint that is signed, or comes before one that is.`)
    .inRecord(async ({ box }, flags: SealFlags & { readonly to?: string; readonly withoutExport?: boolean }) => {
      const { to, withoutExport } = flags;
      if ((to === undefined) !== (withoutExport === true))
        throw new CliExit(EXIT.usage, 'expected either --to FILE, or --without-export');
      const { number } = await seal(box, flags);
      if (to !== undefined) await exportTo(box, to);
      const { trimmed } = await box.witness.trim({ upTo: number });
      const json = { checkpoint: number, trimmed, ...given({ file: to }) };
      command.answer(json, `trimmed ${trimmed} entries behind checkpoint ${number}`);
    });
}

export function configure(command: Command): void {
  command
    .about(`set the limits of the record and how often it is sealed; without options, print them

Examples:
  signalbox witness configure
  signalbox witness configure --most-entries 100000 --checkpoint-every 15m

The settings apply to all processes that use the store. What is trimmed is lost, unless a process archives it first:
signalbox serve --witness-archive DIRECTORY`)
    .option('--most-entries <number>', 'trim it when it has more entries than this', numberArgument)
    .option('--most-bytes <number>', 'trim it when it takes more than this', numberArgument)
    .duration('--checkpoint-every', 'the time between two checkpoints; 0s for none')
    .inRecord(async ({ box }, flags: { mostEntries?: number; mostBytes?: number; checkpointEvery?: number }) => {
      const { mostEntries, mostBytes, checkpointEvery: checkpointMs } = flags;
      const kept = await box.witness.configure(given({ mostEntries, mostBytes, checkpointMs }));
      const { entries, bytes, filled } = await box.witness.size();
      if (command.isJson) return printJson({ ...kept, entries, bytes, filled });
      for (const line of tellRetention(kept, { entries, bytes, filled })) print(line);
    });
}

function tellRetention(
  { mostEntries, mostBytes, checkpointMs }: WitnessRetention,
  { entries, bytes, filled }: Awaited<ReturnType<Signalbox['witness']['size']>>,
): readonly string[] {
  const every = checkpointMs === 0 ? 'no checkpoints by maintenance' : `a checkpoint every ${checkpointMs / 1000} s`;
  return [
    `keeps at most ${mostEntries} entries and ${mostBytes} bytes; ${every}`,
    `has ${entries} entries, about ${bytes} bytes: ${Math.round(filled * 100)} % full`,
  ];
}

export function signerFrom(file: string): Signer {
  let signer: Signer | undefined;
  try {
    signer = signerWith(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new CliExit(EXIT.usage, `the key cannot be read: ${(error as Error).message}`);
  }
  if (signer !== undefined) return signer;
  throw new CliExit(EXIT.usage, `${file} holds no private Ed25519 key; create one: signalbox witness key create FILE`);
}
