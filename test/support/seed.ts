/** What random tests begin with, in this whole run: `vitest.config.ts` says how it is chosen. */
import { configureGlobal, readConfigureGlobal } from 'fast-check';

export const SEED = Number(process.env['SIGNALBOX_SEED']);
if (!Number.isSafeInteger(SEED)) throw new Error('SIGNALBOX_SEED: a whole number, or random');

// Before the tests of each file. A property that names a seed of its own, such as one that must find a planted bug, keeps it.
configureGlobal({ ...readConfigureGlobal(), seed: SEED });
