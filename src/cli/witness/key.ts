/** `signalbox witness key create` and `witness key show`: the keys that sign checkpoints. */
import type { Command } from '../command.ts';
import { readFileSync, writeFileSync } from 'node:fs';
import { shown } from '../../failure.ts';
import { newKey, publicKeyIn } from '../../host/index.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { notWritten } from './segment.ts';

export function key(command: Command): void {
  command
    .about(`create and show keys that sign checkpoints

Examples:
  signalbox witness key create witness.key
  signalbox witness key show witness.key.pub`)
    .subcommands({ create, show });
}

function create(command: Command): void {
  command
    .about(`create a key: FILE signs, FILE.pub verifies

Examples:
  signalbox witness key create ~/.config/signalbox/witness.key
  signalbox witness verify record.jsonl --key ~/.config/signalbox/witness.key.pub

Keep the private key away from everyone who writes to the store: with it they could sign another history. An existing
file is not overwritten.`)
    .argument('<file>', 'where to write the private key; only you can read it')
    .action((file: string) => {
      const { id, privatePem, publicPem } = newKey();
      writeNew(file, privatePem, 0o600);
      writeNew(`${file}.pub`, publicPem, 0o644);
      const json = { id, privateKey: file, publicKey: `${file}.pub` };
      command.answer(json, `key ${id}: signs with ${file}, verifies with ${file}.pub`);
    });
}

function show(command: Command): void {
  command
    .description('print the id and the public key')
    .argument('<file>', 'a private or a public key')
    .addHelpText('after', `\nExample:\n  signalbox witness key show witness.key`)
    .action((file: string) => {
      const { id, publicPem } = readPublicKey(file);
      command.answer({ id, publicKey: publicPem }, `key ${id}\n${publicPem.trimEnd()}`);
    });
}

function writeNew(file: string, text: string, mode: number): void {
  try {
    writeFileSync(file, text, { mode, flag: 'wx' });
  } catch (error) {
    throw notWritten(shown(file), error);
  }
}

/** Of a file that holds a public or a private key. */
export function readPublicKey(file: string): { readonly id: string; readonly publicPem: string } {
  const found = publicKeyIn(readText(file));
  if (found !== undefined) return found;
  throw new CliExit(
    EXIT.usage,
    `${shown(file)} holds no Ed25519 key in PEM; create one: signalbox witness key create FILE`,
  );
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new CliExit(EXIT.usage, `${shown(file)} cannot be read: ${(error as Error).message}`);
  }
}
