/** `signalbox witness …`: the record of every change, and the proof that nobody changed it. */
import type { Command } from './command.ts';
import { key } from './witness/key.ts';
import { proof } from './witness/proof.ts';
import { checkpoint, configure, trim } from './witness/keeping.ts';
import { exportRecord, record, show, tail } from './witness/recording.ts';
import { verify } from './witness/verify.ts';

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
  command.addHelpText('after', EXAMPLES).subcommands({
    ...{ tail, show, record, export: exportRecord },
    ...{ checkpoint, trim, configure, verify, proof, key },
  });
}
