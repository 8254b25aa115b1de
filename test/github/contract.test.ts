import { createEmulator, type Emulator } from 'emulate';
import { afterAll, beforeAll } from 'vitest';
import { fakeGitHub } from 'signalbox/testing';
import { OctokitClient } from 'signalbox/github';
import { EMPTY_TREE } from '../../src/github/local/repository.ts';
import { freePort } from '../support/ports.ts';
import { clientContract } from './contract.ts';
import { checked } from './stage.ts';

clientContract('this repository', () => {
  const { github, client } = fakeGitHub({ onExchange: checked });
  github.repository.addIssue(1);
  return Promise.resolve({ client, issue: 1, login: 'local', close: () => Promise.resolve() });
});

// A fake that others wrote, for other purposes.
const seed = {
  tokens: { token: { login: 'worker', scopes: ['repo'] } },
  github: {
    users: [{ login: 'worker' }],
    repos: [{ owner: 'worker', name: 'rocket', auto_init: true }],
  },
};
let emulator: Emulator;
beforeAll(async () => {
  emulator = await createEmulator({ service: 'github', port: await freePort(), seed });
});
afterAll(() => emulator.close());
clientContract(
  'emulate',
  async () => {
    emulator.reset();
    const make = async (path: string, body: object): Promise<{ readonly number: number; readonly sha: string }> => {
      const headers = { authorization: 'Bearer token', 'content-type': 'application/json' };
      const init = { method: 'POST', headers, body: JSON.stringify(body) };
      const made = await fetch(`${emulator.url}/repos/worker/rocket${path}`, init);
      return (await made.json()) as { readonly number: number; readonly sha: string };
    };
    const { number } = await make('/issues', { title: 'one' });
    // It does not know the empty tree, which git always has; another one stands in for it.
    const entry = { path: 'a', mode: '100644', type: 'blob', content: 'a' };
    const { sha: tree } = await make('/git/trees', { tree: [entry] });
    const client = new OctokitClient({
      ...{ githubRepo: 'worker/rocket', token: 'token', baseUrl: emulator.url, env: {} },
      fetch: (input, init = {}) =>
        fetch(input, typeof init.body === 'string' ? { ...init, body: init.body.replace(EMPTY_TREE, tree) } : init),
    });
    return { client, issue: number, login: 'worker', close: () => Promise.resolve() };
  },
  [
    // It has no GraphQL.
    'several refs move together or not at all',
    // It shows a commit in the form of another endpoint.
    'a commit has the message, the parents and a date of the server',
    // It answers 422.
    'who may not be assigned is left out without an error',
  ],
);
