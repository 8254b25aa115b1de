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

/** By the error of the socket. */
export function whyNoConnection(error: Error): string {
  // One for each of the addresses that a name stands for, and an empty message of its own.
  if (error instanceof AggregateError) return error.errors.map((each: Error) => each.message).join('; ');
  if (NO_TLS.test(error.message)) return `it does not speak TLS (${error.message.trim()})`;
  const { code } = error as NodeJS.ErrnoException;
  return code === undefined || error.message.includes(code) ? error.message : `${error.message} (${code})`;
}
