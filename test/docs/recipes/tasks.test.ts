// docs/shell.md: a queue and its workers.

import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { built } from '../../support/run-processes.ts';
import { recipe, shapeOf } from './page.ts';
import { Workshop } from './workshop.ts';

/** The page about us is there at the second look only. */
const CHECK = `
grep -q about "$SIGNALBOX_TASK_FILE" && [ "$SIGNALBOX_TASK_ATTEMPT" = 1 ] && exit 1
echo "checked $(cat)" >> "$LOG"`;

describe('the recipes for a queue', () => {
  let shop: Workshop;
  beforeAll(built);
  beforeEach(() => {
    shop = new Workshop();
    shop.standIn('./check.sh', CHECK);
  });
  afterEach(() => shop.leave());

  const told = (text: string): readonly string[] =>
    shapeOf(text.replaceAll(/work:\S+/g, 'WORKER').replaceAll(/ +/g, ' '))
      .trim()
      .split('\n')
      .map((line) => line.trim())
      .toSorted();

  it('do each task, and one that failed again after a pause', async () => {
    const { code, stdout, stderr } = await shop.try('queue').ended;
    expect(code).toBe(0);
    expect(told(`${stdout}${stderr}`)).toEqual(told(recipe('queue').shows.join('')));
    expect(shop.log.filter((line) => line.startsWith('checked')).length).toBe(3);
  });

  it('have a failed task tried again, and forget what is done', async () => {
    shop.standIn('./check.sh', 'grep -q about "$SIGNALBOX_TASK_FILE" && exit 1; true');
    await shop.try('queue', { with: { '--retries 2': '--retries 0' } }).ended;
    const { code, stdout } = await shop.try('queue-retry').ended;
    expect(code).toBe(0);
    expect(stdout).toContain('reason      ./check.sh: exit code 1');
    expect(stdout).toContain('task/check/about: was failed, is pending again');
    const { tasks } = await shop.place.open();
    expect((await tasks.list()).map(({ id, status }) => [id, status])).toEqual([['check/about', 'pending']]);
  });
});
