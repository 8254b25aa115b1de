/** `signalbox witness …`: the record of every change, and the proof that nobody changed it. */
import type { Command } from 'commander';
import { addKey } from './witness/key.ts';
import { addProof } from './witness/proof.ts';
import { addCheckpoint, addConfigure, addTrim } from './witness/keeping.ts';
import { addExport, addRecord, addShow, addTail } from './witness/recording.ts';
import { addVerify } from './witness/verify.ts';

const EXAMPLES = `
Examples:
  signalbox witness show lock/main
  signalbox witness tail --resource 'task/*'
  signalbox witness export -o record.jsonl.gz
  signalbox witness verify record.jsonl.gz --anchor anchors.jsonl
  signalbox witness proof create lock/main 17 --from record.jsonl > proof.json
  signalbox witness proof check proof.json --key witness.key.pub
  signalbox witness key create witness.key`;

export function define(command: Command): void {
  command.addHelpText('after', EXAMPLES);
  addTail(command.command('tail'));
  addShow(command.command('show'));
  addRecord(command.command('record'));
  addExport(command.command('export'));
  addCheckpoint(command.command('checkpoint'));
  addTrim(command.command('trim'));
  addConfigure(command.command('configure'));
  addVerify(command.command('verify'));
  addProof(command.command('proof'));
  addKey(command.command('key'));
}
