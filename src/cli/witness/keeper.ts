/** Signs, anchors and archives the record of the witness for a server. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { anchorAt } from '../../adapters/index.ts';
import type { RecordKeeping } from '../../runtime/witness/retention.ts';
import { signerFrom } from './keeping.ts';
import { writeLines } from './segment.ts';

export interface KeeperFlags {
  readonly witnessSign?: string;
  readonly witnessAnchor?: string;
  readonly witnessArchive?: string;
}

/** Undefined if no flag asks for it. `complain` tells a person what failed, because maintenance goes on without that step. */
export function keeperOf(flags: KeeperFlags, complain: (message: string) => void): RecordKeeping | undefined {
  const { witnessSign: sign, witnessAnchor: place, witnessArchive: directory } = flags;
  if (sign === undefined && place === undefined && directory === undefined) return undefined;
  const told = async (what: string, work: Promise<unknown>): Promise<void> => {
    try {
      await work;
    } catch (error) {
      complain(`${what}: ${(error as Error).message}`);
      throw error;
    }
  };
  const anchor = place === undefined ? undefined : anchorAt(place, { cwd: process.cwd(), env: process.env });
  if (directory !== undefined) mkdirSync(directory, { recursive: true, mode: 0o700 });
  return {
    ...(sign !== undefined && { sign: signerFrom(sign) }),
    ...(anchor !== undefined && {
      anchor: (checkpoint) => told(`checkpoint ${checkpoint.number} was not anchored`, anchor.keep(checkpoint)),
    }),
    ...(directory !== undefined && {
      archive: (lines, { number }) => {
        const file = join(directory, `record-${String(number).padStart(6, '0')}.jsonl.gz`);
        return told('the record was not archived, and so not trimmed', writeLines(lines, file));
      },
    }),
  };
}
