/** `signalbox witness verify`: says whether a record is whole and unchanged, and if not, names the first problem. */
import type { Command } from '../command.ts';
import { type Finding, type Verification, Verifier } from '../../core/index.ts';
import { sha256 } from '../../host/index.ts';
import { CliExit, EXIT } from '../exit-code.ts';
import { interruptible } from '../interrupt.ts';
import { print, printable, printJson, tell } from '../output.ts';
import { withWitness } from './with-witness.ts';
import { linesOf } from './record-file.ts';
import { addTrustOptions, type TrustFlags, trustOf } from './trust.ts';

/** How often it shows its progress on a terminal. */
const PROGRESS_MS = 2000;
/** Reading the clock for each entry would cost time. */
const PROGRESS_ENTRIES = 4096;

export function verify(command: Command): void {
  addTrustOptions(command)
    .argument('[file]', 'an export, packed with gzip or not; - is stdin; without it, the record in the store')
    .about(`check that a record is whole and unchanged

Examples:
  signalbox witness verify
  signalbox witness verify record.jsonl.gz
  signalbox witness verify record.jsonl --key witness.key.pub --anchor anchors.jsonl
  ssh build-1 signalbox witness export | signalbox witness verify - --json

With a file it opens no store. Names the first entry that is changed, missing, inserted, reordered, truncated or
forked, and checkpoints with a bad signature or that do not cover what they should. Without --key and --anchor the
record is compared with itself only: if someone rewrote all of it, with all hashes, nobody would notice. Exit code 0
if nothing is wrong, 65 if something is, 64 if the file, a key or an anchor cannot be read.`)
    .action((file: string | undefined, flags: TrustFlags) =>
      file === undefined ? verifyStore(command, flags) : verifyFile(command, file, flags),
    );
}

async function verifyStore(command: Command, flags: TrustFlags): Promise<void> {
  const trust = await trustOf(flags);
  const result = await withWitness(command, (box, signal) => {
    let next = Date.now() + PROGRESS_MS;
    const onProgress = (entries: number): void => {
      signal.throwIfAborted();
      if (Date.now() < next) return;
      tellProgress(entries);
      next = Date.now() + PROGRESS_MS;
    };
    return box.witness.verify({ ...trust, onProgress });
  });
  tellResult(command, result);
}

function tellProgress(entries: number): void {
  tell(`verified ${entries.toLocaleString('en')} entries so far`);
}

async function verifyFile(command: Command, file: string, flags: TrustFlags): Promise<void> {
  const verifier = new Verifier({ digest: sha256, ...(await trustOf(flags)) });
  const result = await interruptible((signal) => readInto(verifier, file, signal));
  tellResult(command, result);
}

/** Reads a record up to the first problem. Calls `seen` for every line. */
export async function readInto(
  verifier: Verifier,
  file: string,
  signal: AbortSignal,
  seen?: (line: string) => void,
): Promise<Verification> {
  let next = Date.now() + PROGRESS_MS;
  for await (const line of linesOf(file)) {
    signal.throwIfAborted();
    verifier.line(line);
    seen?.(line);
    if (verifier.isDecided) break;
    if (verifier.entries % PROGRESS_ENTRIES !== 0 || Date.now() < next) continue;
    tellProgress(verifier.entries);
    next = Date.now() + PROGRESS_MS;
  }
  return verifier.finish();
}

/** Ends the command with 65 if something is wrong. */
export function tellResult(command: Command, result: Verification): void {
  const { finding } = result;
  if (command.isJson) printJson({ ok: finding === undefined, ...result });
  if (finding !== undefined) throw new CliExit(EXIT.integrity, command.isJson ? '' : printable(findingText(finding)));
  if (!command.isJson) for (const line of resultLines(result)) print(line);
}

/** `line 17: entry 5 of lock/main is missing: …`. */
export function findingText({ kind, resource, seq, checkpoint, line, why }: Finding): string {
  const entry = resource === undefined ? undefined : `entry ${seq} of ${resource}`;
  const what = entry ?? (checkpoint === undefined ? 'the record' : `checkpoint ${checkpoint}`);
  return `${line === undefined ? '' : `line ${line}: `}${what}: ${kind}: ${why}`;
}

function resultLines(result: Verification): readonly string[] {
  const { entries, chains, checkpoints, signed, anchored, covered, vouched, trimmed } = result;
  const some = (count: number, what: string): string =>
    `${count.toLocaleString('en')} ${what}${count === 1 ? '' : 's'}`;
  const kept = [...(signed > 0 ? [`${signed} signed`] : []), ...(anchored > 0 ? [`${anchored} anchored`] : [])];
  const open = entries - covered;
  return [
    `good: ${some(entries, 'entry').replace('entrys', 'entries')} in ${some(chains, 'chain')}`,
    `${some(checkpoints, 'checkpoint')}${kept.length === 0 ? '' : ` (${kept.join(', ')})`}`,
    ...(trimmed > 0 ? [`${trimmed.toLocaleString('en')} older entries were trimmed; a checkpoint covers them`] : []),
    ...(open > 0
      ? [`${open.toLocaleString('en')} entries came after the last checkpoint that covers their chain`]
      : []),
    ...(vouched < covered
      ? [`${(covered - vouched).toLocaleString('en')} entries came after the last checkpoint that is signed`]
      : []),
  ];
}
