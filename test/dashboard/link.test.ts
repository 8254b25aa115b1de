// The link that `token create --link` prints is one that the page understands.

import { expect, it } from 'vitest';
import { linkWith } from '../../src/cli/token.ts';
import { tokenIn } from '../../src/dashboard/model/route.ts';

const SECRET = `sbx_0123456789abcdef_${'aZ-_'.repeat(10)}abc`;

it.each([
  ['http://127.0.0.1:7300', 'http://127.0.0.1:7300/', '#/overview'],
  ['https://box.example.org:8443/', 'https://box.example.org:8443/', '#/overview'],
  ['http://127.0.0.1:7300/#/locks/a%2Fb?sort=name&up', 'http://127.0.0.1:7300/', '#/locks/a%2Fb?sort=name&up'],
])('%s', (page, address, view) => {
  const link = new URL(linkWith(new URL(page), SECRET));
  expect(tokenIn(link.hash)).toEqual({ token: SECRET, rest: view });
  // Browsers do not send what is behind the #.
  link.hash = '';
  expect(link.href).toBe(address);
});
