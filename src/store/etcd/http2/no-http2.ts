/** Why there is no HTTP/2 with a server, in words that tell what to do about it. */

const TLS_ALERT = 0x15;
const TLS_HANDSHAKE = 0x16;

/** By the first bytes of its answer. */
export function spokenInstead(head: Buffer): string {
  if (head.toString('latin1', 0, 5) === 'HTTP/')
    return 'answered in HTTP/1: it is no etcd, or this is not its client port';
  // Then two bytes of version, of which the first is 3 in all of them.
  if ((head[0] === TLS_ALERT || head[0] === TLS_HANDSHAKE) && head[1] === 3) return 'wants TLS, and was called without';
  const text = head.toString('latin1');
  const said = /^[\x20-\x7e\r\n\t]*$/.test(text) ? JSON.stringify(text) : `the bytes ${head.toString('hex')}`;
  return `does not speak HTTP/2: it began with ${said}`;
}

/** What OpenSSL says when what it reads is no TLS at all. */
const NO_TLS = /wrong version number|packet length too long|record layer failure|unexpected message/i;

/** What to do about it, by what OpenSSL or Node says. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [
    /alert (bad certificate|certificate required|unknown ca|certificate unknown)/i,
    "it wants a certificate that it knows: cert and key of the store's URL",
  ],
  [/UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|SELF_SIGNED/, "ca of the store's URL says whose certificates to trust"],
  [/ALTNAME_INVALID/, "server-name of the store's URL says which name its certificate has"],
];

/** By the error of the socket. */
export function whyNoConnection(error: Error): string {
  // One for each of the addresses that a name stands for, and an empty message of its own.
  if (error instanceof AggregateError) return error.errors.map((each: Error) => each.message).join('; ');
  if (NO_TLS.test(error.message)) return `it does not speak TLS (${error.message.trim()})`;
  const { code, reason } = error as NodeJS.ErrnoException & { readonly reason?: unknown };
  // OpenSSL's message is a dump with the line of its source; its reason is the part that is meant for people.
  const isDump = code?.startsWith('ERR_SSL_') === true && typeof reason === 'string';
  const message = isDump ? reason : error.message.trim();
  const told = code === undefined || message.includes(code) ? message : `${message} (${code})`;
  const remedy = REMEDIES.find(([words]) => words.test(told))?.[1];
  return remedy === undefined ? told : `${told}; ${remedy}`;
}
