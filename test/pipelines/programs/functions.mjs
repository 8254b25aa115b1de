// @ts-check
// What phases do who are functions: each writes down that it ran, with which token, and where its environment says HANGS
// it does not end.

import { appendFileSync } from 'node:fs';
import { join } from 'node:path';

/** The same for a command. */
export const DID = 'echo "$SIGNALBOX_PHASE $SIGNALBOX_ATTEMPT $SIGNALBOX_DRIVER_TOKEN" >> did';

/**
 * @param {import('signalbox/core').Runbook} runbook
 * @param {string} directory
 * @returns {Map<string, (phase: { phase: string, attempt: number, token: number, env: Readonly<Record<string, string>> }) => unknown>}
 */
export function functionsOf({ phases }, directory) {
  return new Map(
    phases.map(({ name }) => [
      name,
      ({ phase, attempt, token, env }) => {
        appendFileSync(join(directory, 'did'), `${phase} ${attempt} ${token}\n`);
        return env['HANGS'] === undefined ? undefined : new Promise(() => undefined);
      },
    ]),
  );
}
