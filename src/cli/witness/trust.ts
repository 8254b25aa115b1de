/** What a record is compared with: keys that sign its checkpoints, and places that keep them. */
import type { Command } from '../command.ts';
import { anchorAt } from '../../adapters/index.ts';
import type { VerifierOptions } from '../../core/index.ts';
import { signatureCheck } from '../../host/index.ts';
import { readPublicKey } from './key.ts';

export interface TrustFlags {
  readonly key: readonly string[];
  readonly anchor: readonly string[];
}

export function addTrustOptions(command: Command): Command {
  return command
    .list('--key <file>', 'the public key that must have signed the checkpoints; repeatable')
    .list('--anchor <place>', 'where checkpoints were anchored: a file, or git:REF; repeatable');
}

/** Reads keys and anchors; without any, a record is only compared with itself. */
export async function trustOf({ key, anchor }: TrustFlags): Promise<Omit<VerifierOptions, 'digest'>> {
  const pems = key.map((file) => readPublicKey(file).publicPem);
  const options = { cwd: process.cwd(), env: process.env };
  const kept = await Promise.all(anchor.map((place) => anchorAt(place, options).kept()));
  return {
    ...(pems.length > 0 && { verifySignature: signatureCheck(pems) }),
    ...(kept.length > 0 && { anchors: kept.flat() }),
  };
}
