import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import type { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { type Gate, gateFor } from './gate.ts';

describe('the program at a gate', () => {
  const gate = (
    env: NodeJS.ProcessEnv,
    tools: readonly string[],
    argv: [string, ...string[]] = ['ls', '-l', 'a b'],
  ): Gate =>
    gateFor({ program: `/bin/${argv[0]}`, argv, env }, 3, (name) =>
      tools.includes(name) ? `/tools/${name}` : undefined,
    );

  it('is the shell for what every shell passes on, and becomes what was asked for', () => {
    const { file, args, env } = gate({ PATH: '/bin' }, ['perl', 'bash']);
    expect([file, ...args.slice(2)]).toEqual(['/bin/sh', 'sh', 'ls', '-l', 'a b']);
    expect(env).toEqual({ PATH: '/bin' });
  });

  it('takes no command for an option', () => {
    expect(gate({}, [], ['-x']).args.slice(2)).toEqual(['sh', '/bin/-x']);
  });

  it('has no variable in its arguments, and of the odd ones none in its environment', () => {
    const { file, args, env, go } = gate({ 'BASH_FUNC_f%%': '() { :; }', 'a.b': '1=2', '-i': 'x' }, ['perl', 'bash']);
    expect(file).toBe('/tools/perl');
    expect(args.join(' ')).not.toMatch(/BASH_FUNC|a\.b|1=2/);
    expect(Object.keys(env)).not.toContain('a.b');
    expect(go.toString().split('\0')).toEqual([
      '7',
      '3',
      '/bin/ls',
      'ls',
      '-l',
      'a b',
      'BASH_FUNC_f%%=() { :; }',
      'a.b=1=2',
      '-i=x',
      '.',
    ]);
  });

  it('is bash where there is no perl: it keeps variables that sh would drop', () => {
    expect(gate({ 'a.b': '1' }, ['bash'])).toMatchObject({ file: '/tools/bash', argv0: 'sh', env: { 'a.b': '1' } });
  });

  it('refuses to drop variables where neither is there, and names them without their values', () => {
    expect(() => gate({ 'a.b': 'secret' }, [])).toThrow(/^a\.b: sh drops .* install perl or bash, or unset/);
    expect(() => gate({ 'a.b': 'secret' }, [])).not.toThrow(/secret/);
  });

  it.each(['IFS', 'OPTIND', 'TMOUT', 'SHELLOPTS'])(
    'is no shell where %s would make a shell do something else',
    (name) => {
      expect(gate({ [name]: 'x' }, ['perl']).file).toBe('/tools/perl');
      expect(gate({ [name]: 'x' }, []).file).toBe('/bin/sh');
    },
  );

  it('cannot be told a text that ends in the middle', () => {
    expect(() => gate({ 'a.b': 'x\0y' }, ['perl'])).toThrow(/NUL/);
  });

  const places = { perl: '/usr/bin/perl', bash: '/bin/bash' } as const;
  describe.each(['perl', 'bash'] as const)('if it is %s', (tool) => {
    const begun = async (part: number): Promise<{ readonly code: number; readonly printed: string }> => {
      const command = { program: '/usr/bin/env', argv: ['env'] as const, env: { 'a.b': 'c d', PATH: '/usr/bin:/bin' } };
      const { file, args, argv0, env, go } = gateFor(command, 3, (name) => (name === tool ? places[tool] : undefined));
      const child = spawn(file, args, { argv0, env, stdio: ['ignore', 'pipe', 'inherit', 'pipe'] });
      (child.stdio[3] as Writable).end(Buffer.from(go).subarray(0, part * go.length));
      const [printed, [code]] = await Promise.all([text(child.stdout as never), once(child, 'exit')]);
      return { code: code as number, printed };
    };

    // Not every machine has both; those that test this do.
    it.skipIf(!existsSync(places[tool]))('passes an odd variable on', async () => {
      const { code, printed } = await begun(1);
      expect(code).toBe(0);
      expect(printed.split('\n')).toContain('a.b=c d');
    });

    it.skipIf(!existsSync(places[tool]))(
      'ends without the command if this process dies while it lets it go',
      async () => {
        expect(await begun(0.5)).toEqual({ code: 125, printed: '' });
      },
    );
  });
});
