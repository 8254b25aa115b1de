import { describe, expect, it } from 'vitest';
import { commandThrough, GatedChild } from './gated-child.ts';

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

describe('the command that a gate becomes', () => {
  it('is what was asked for', () => {
    expect(commandThrough('/bin/ls', ['ls', '-l', 'a b'], { PATH: '/bin' })).toEqual(['ls', '-l', 'a b']);
  });

  it('is not taken for an option of the shell', () => {
    expect(commandThrough('/bin/-x', ['-x'], {})).toEqual(['/bin/-x']);
  });

  it('gets the variables that a shell would drop, but for those that look like options', () => {
    const env = { PATH: '/bin', 'BASH_FUNC_f%%': '() { :; }', 'a.b': '1=2', '-i': 'x' };
    expect(commandThrough('/bin/ls', ['ls'], env)).toEqual([
      '/usr/bin/env',
      'BASH_FUNC_f%%=() { :; }',
      'a.b=1=2',
      'ls',
    ]);
  });
});
