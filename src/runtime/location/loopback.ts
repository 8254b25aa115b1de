/** The addresses that a name of this machine leads to. */

/**
 * The servers to ask for these URLs. The local token is sent only where a process of this user listens, and `localhost` leads
 * to two addresses, of which another user may take the free one: so each of them is a server by itself. A name stays as it is
 * if the caller named the token, and over TLS, where the certificate contains the name.
 */
export function addressesOf(
  urls: string | readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const isNamed = [env['SIGNALBOX_SERVER_TOKEN'], env['SIGNALBOX_TOKEN_FILE']].some((one) => (one ?? '') !== '');
  return [urls].flat().flatMap((url) => {
    const { protocol, hostname } = URL.canParse(url) ? new URL(url) : {};
    if (isNamed || protocol !== 'http:' || hostname !== 'localhost') return [url];
    return ['127.0.0.1', '[::1]'].map((address) => Object.assign(new URL(url), { hostname: address }).href);
  });
}
