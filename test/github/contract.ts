// What the lock protocol relies on, asked of a client and the GitHub behind it.

import { describe, expect, it } from 'vitest';
import type { GitHubClient } from 'signalbox/github';

const REF = 'refs/signalbox/locks/issue-1';

export interface ContractSubject {
  readonly client: GitHubClient;
  /** Of an open issue. */
  readonly issue: number;
  readonly login: string;
  close(): Promise<void>;
}

/** `exceptions`: promises that this GitHub does not keep, by their names. */
export function clientContract(
  name: string,
  open: () => Promise<ContractSubject>,
  exceptions: readonly string[] = [],
): void {
  const promises: Readonly<Record<string, (subject: ContractSubject) => Promise<void>>> = {
    'a ref is made once': async ({ client }) => {
      const [one, other] = [await commit(client, 'one'), await commit(client, 'other')];
      expect(await client.createRef(REF, one)).toMatchObject({ kind: 'ok' });
      expect(await client.createRef(REF, other)).toMatchObject({ kind: 'refused', status: 422 });
      expect(await client.getRef(REF)).toMatchObject({ kind: 'ok', value: { ref: REF, sha: one } });
    },
    'a ref that is not there is missing': async ({ client }) => {
      expect(await client.getRef(REF)).toMatchObject({ kind: 'missing' });
    },
    'a ref moves to a descendant only, so that of two who saw the same tip one wins': async ({ client }) => {
      const root = await commit(client, 'root');
      await client.createRef(REF, root);
      const [one, other] = [await commit(client, 'one', root), await commit(client, 'other', root)];
      expect(await client.updateRef(REF, one)).toMatchObject({ kind: 'ok' });
      expect(await client.updateRef(REF, other)).toMatchObject({ kind: 'refused', status: 422 });
      expect(await client.getRef(REF)).toMatchObject({ value: { sha: one } });
    },
    'moving to where it is already changes nothing': async ({ client }) => {
      const root = await commit(client, 'root');
      await client.createRef(REF, root);
      expect(await client.updateRef(REF, root)).toMatchObject({ kind: 'ok' });
    },
    'a commit has the message, the parents and a date of the server': async ({ client }) => {
      const root = await commit(client, 'root');
      const made = await client.createCommit('{"v":1}', [root]);
      if (made.kind !== 'ok') throw new Error(made.message);
      const read = await client.getCommit(made.value.sha);
      expect(read).toMatchObject({ kind: 'ok', value: { message: '{"v":1}', parents: [root] } });
      const dateMs = read.kind === 'ok' ? read.value.dateMs : 0;
      expect(Math.abs(dateMs - (made.date?.ms ?? 0))).toBeLessThan(60_000);
    },
    'refs are listed by their prefix': async ({ client }) => {
      await client.createRef(REF, await commit(client, 'root'));
      expect(await client.listRefs('refs/signalbox/locks/')).toMatchObject({ kind: 'ok', value: [{ ref: REF }] });
      expect(await client.listRefs('refs/signalbox/queue/')).toMatchObject({ kind: 'ok', value: [] });
    },
    'several refs move together or not at all': async ({ client }) => {
      const root = await commit(client, 'root');
      const other = REF.replace('1', '2');
      expect(
        await client.updateRefs([
          { ref: REF, from: null, to: root },
          { ref: other, from: root, to: root },
        ]),
      ).toMatchObject({ kind: 'refused' });
      expect(await client.getRef(REF)).toMatchObject({ kind: 'missing' });
      expect(
        await client.updateRefs([
          { ref: REF, from: null, to: root },
          { ref: other, from: null, to: root },
        ]),
      ).toMatchObject({ kind: 'ok' });
      expect(await client.listTips('refs/signalbox/locks/')).toMatchObject({
        value: [{ sha: root, message: 'root' }, { sha: root }],
      });
    },
    'an issue shows its state and who is assigned': async ({ client, issue, login }) => {
      expect(await client.getIssue(issue)).toMatchObject({ kind: 'ok', value: { isOpen: true, assignees: [] } });
      expect(await client.assignIssue(issue, login)).toMatchObject({ kind: 'ok', value: { assignees: [login] } });
      expect(await client.getIssue(issue)).toMatchObject({ value: { assignees: [login] } });
      await client.unassignIssue(issue, login);
      expect(await client.getIssue(issue)).toMatchObject({ value: { assignees: [] } });
    },
    'who may not be assigned is left out without an error': async ({ client, issue }) => {
      expect(await client.assignIssue(issue, 'nobody-of-this-name')).toMatchObject({
        kind: 'ok',
        value: { assignees: [] },
      });
    },
    'a comment is written and edited': async ({ client, issue }) => {
      const made = await client.addComment(issue, 'one');
      if (made.kind !== 'ok') throw new Error(made.message);
      expect(await client.editComment(made.value.id, 'two')).toMatchObject({ kind: 'ok' });
      expect(await client.listComments(issue)).toMatchObject({ value: [{ id: made.value.id, body: 'two' }] });
    },
    'an issue that is not there is missing': async ({ client }) => {
      expect(await client.getIssue(987_654)).toMatchObject({ kind: 'missing' });
    },
    'the token has a login': async ({ client, login }) => {
      expect(await client.getLogin()).toMatchObject({ kind: 'ok', value: login });
    },
  };
  describe(`the GitHub of ${name}`, () => {
    for (const [promise, keeps] of Object.entries(promises)) {
      const isException = exceptions.includes(promise);
      it(isException ? `does not keep: ${promise}` : promise, async () => {
        const subject = await open();
        try {
          if (!isException) await keeps(subject);
          // An exception that has become true is to be taken from the list.
          else await expect(keeps(subject)).rejects.toThrow();
        } finally {
          await subject.close();
        }
      });
    }
  });
}

async function commit(client: GitHubClient, message: string, ...parents: readonly string[]): Promise<string> {
  const made = await client.createCommit(message, parents);
  if (made.kind !== 'ok') throw new Error(`no commit: ${made.message}`);
  return made.value.sha;
}
