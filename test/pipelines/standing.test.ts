// A standing driver next to processes that drive pipelines of their own.

import { open } from 'signalbox';
import { expect, it, onTestFinished } from 'vitest';
import { book, shell } from './books.ts';

const ROUNDS = 10;

it('a standing driver takes no pipeline from the process that runs it, and stops if a callback throws', async () => {
  const url = `memory:standing-${process.pid}`;
  await using box = await open(url);
  await using other = await open(url);
  const over = new AbortController();
  onTestFinished(() => over.abort());
  const driven: string[] = [];
  const standing = other.pipelines.driveAll({
    signal: over.signal,
    onChange: ({ id }) => {
      driven.push(id);
      throw new TypeError('thrown by the test');
    },
  });
  for (let round = 0; round < ROUNDS; round++) {
    const outcome = await box.pipelines.run(book(shell('work', 'exit 0')), { id: `own-${round}` });
    expect(outcome).toMatchObject({ kind: 'left', record: { state: 'done' } });
  }
  await box.pipelines.start(book(shell('work', 'exit 0')), { id: 'started' });
  await expect(standing).rejects.toThrow('thrown by the test');
  expect([...new Set(driven)]).toEqual(['started']);
});
