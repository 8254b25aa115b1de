import { describe, expect, it } from 'vitest';
import { GatedChild } from './gated-child.ts';

describe('a child at its gate', () => {
  const start = (script: string): Promise<GatedChild> =>
    GatedChild.start('/bin/sh', ['sh', '-c', script], { PATH: process.env['PATH'] }, { leads: true, mark: 'mark' });

  it('has run nothing, and never will if it is abandoned', async () => {
    const child = await start('exit 3');
    await child.abandon();
    expect(await child.ended).toEqual({ code: 125 });
  });

  it('becomes the command when it is let go, with the same pid', async () => {
    const child = await start('exit $(( $$ % 100 ))');
    child.letGo();
    expect(await child.ended).toEqual({ code: child.pid % 100 });
  });

  it('may be ended while it waits', async () => {
    const child = await start('exit 3');
    process.kill(-child.pid, 'SIGTERM');
    expect(await child.ended).toEqual({ signal: 'SIGTERM' });
    child.letGo();
  });
});
