/** Explains why a server could not be talked to in HTTP/2. */

const TLS_ALERT = 0x15;
const TLS_HANDSHAKE = 0x16;

/** Recognises the server's protocol by the first bytes of its answer. */
export function spokenInstead(head: Buffer): string {
  if (head.toString('latin1', 0, 5) === 'HTTP/') return 'answered in HTTP/1, so it is not a gRPC server';
  // Two bytes of version follow. The first is 3 in every version of TLS.
  if ((head[0] === TLS_ALERT || head[0] === TLS_HANDSHAKE) && head[1] === 3) return 'wants TLS, and was called without';
  const text = head.toString('latin1');
  const said = /^[\x20-\x7e\r\n\t]*$/.test(text) ? JSON.stringify(text) : `the bytes ${head.toString('hex')}`;
  return `does not speak HTTP/2: it began with ${said}`;
}

/** OpenSSL's messages for bytes that are not TLS. */
const NO_TLS = /wrong version number|packet length too long|record layer failure|unexpected message/i;

/** Explains a socket's error. */
export function whyNoConnection(error: Error): string {
  // Node reports one error for each address of the host name, and leaves its own message empty.
  if (error instanceof AggregateError) return error.errors.map((each: Error) => each.message).join('; ');
  if (NO_TLS.test(error.message)) return `it does not speak TLS (${error.message.trim()})`;
  const { code, reason } = error as NodeJS.ErrnoException & { readonly reason?: unknown };
  // OpenSSL's message is a dump with a line of its source code. Its reason is the readable part.
  const isDump = code?.startsWith('ERR_SSL_') === true && typeof reason === 'string';
  const message = isDump ? reason : error.message.trim();
  return code === undefined || message.includes(code) ? message : `${message} (${code})`;
}
