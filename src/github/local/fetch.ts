/** The local GitHub without a socket: a `fetch` that answers in this process. */
import type { LocalGitHub } from './local-github.ts';

export function fetchFrom(github: LocalGitHub): typeof globalThis.fetch {
  return async (input, init = {}) => {
    const url = new URL(input instanceof Request ? input.url : String(input));
    const headers = Object.fromEntries(new Headers(init.headers).entries());
    const body = typeof init.body === 'string' ? { body: JSON.parse(init.body) as unknown } : {};
    const reply = github.handle({
      method: init.method ?? 'GET',
      path: `${url.pathname}${url.search}`,
      headers,
      ...body,
    });
    // The message that Node's `fetch` has for a broken connection.
    if (reply === undefined) throw new TypeError('fetch failed');
    const text = reply.body === undefined ? null : JSON.stringify(reply.body);
    return Promise.resolve(new Response(text, { status: reply.status, headers: reply.headers }));
  };
}
