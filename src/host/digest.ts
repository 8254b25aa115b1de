/** SHA-256. */
import type Crypto from 'node:crypto';

/** `node:crypto` once it is needed: it takes milliseconds to load, and most commands never hash. */
let crypto: typeof Crypto | undefined;

/** The SHA-256 of a text's UTF-8, in lower-case hex. */
export function sha256(text: string): string {
  crypto ??= process.getBuiltinModule('node:crypto');
  return crypto.hash('sha256', text, 'hex');
}
