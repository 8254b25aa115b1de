import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { open } from 'signalbox';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  canonical,
  emptyChain,
  endLine,
  entryLine,
  headerLine,
  nextCheckpoint,
  nextEntry,
  Verifier,
} from '../../src/core/witness/index.ts';
import { sha256 } from '../../src/host/index.ts';
import { exported, record, trimmed } from './history.ts';
import { mutationsOf } from './mutations.ts';

const PROGRAM = join(import.meta.dirname, '../../examples/verify-witness.py');

/** Verifies many records in one process; prints the exit code of each. */
const MANY = `
import contextlib, importlib.util, io, json, sys
spec = importlib.util.spec_from_file_location("program", sys.argv[1])
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)
lines = json.load(open(sys.argv[2], encoding="utf-8"))
codes = []
for numbers in json.load(open(sys.argv[3])):
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            program.verify([lines[number] for number in numbers], {})
        codes.append(0)
    except SystemExit as end:
        codes.append(end.code)
    except Exception:
        codes.append(65)
print(json.dumps(codes))
`;

describe('the verifier in Python', () => {
  let dir: string;
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'witness-'));
  });
  afterAll(() => rmSync(dir, { recursive: true }));

  const history = record({ entries: 60, resources: 6, every: 20 });

  function verified(
    lines: readonly string[],
    ...anchors: readonly string[]
  ): { status: number | null; stdout: string } {
    const file = join(dir, 'export.jsonl');
    writeFileSync(file, `${lines.join('\n')}\n`);
    const kept = join(dir, 'anchors.jsonl');
    writeFileSync(kept, anchors.map((line) => `${line}\n`).join(''));
    return spawnSync('python3', [PROGRAM, file, ...(anchors.length > 0 ? [kept] : [])], { encoding: 'utf8' });
  }

  it('finds nothing wrong with an export, trimmed or not, packed or not', () => {
    expect(verified(exported(history))).toMatchObject({
      status: 0,
      stdout: 'good: 60 entries of 6 chains, 3 checkpoints\n',
    });
    expect(verified(exported(trimmed(history, 2)))).toMatchObject({ status: 0 });
    const packed = join(dir, 'export.jsonl.gz');
    writeFileSync(packed, gzipSync(`${exported(history).join('\n')}\n`));
    expect(spawnSync('python3', [PROGRAM, packed]).status).toBe(0);
  });

  it('agrees about chains that were closed, dropped and begun again', async () => {
    await using box = await open('memory:', { witness: true, maintains: false });
    const told: (string | undefined)[] = [];
    const look = async (): Promise<void> => {
      const lines: string[] = [];
      for await (const line of box.witness.export()) lines.push(line);
      const { status, stdout } = verified(lines);
      told.push(status === 0 ? undefined : stdout);
      const without = lines.map((line) => line.replace('"closed":true,', ''));
      if (without.join() !== lines.join()) expect(verified(without).status).toBe(65);
    };
    await box.tasks.publish('7', {});
    await box.tasks.forget('7');
    for (let round = 0; round < 2; round++) {
      await box.witness.checkpoint();
      await look();
      await box.witness.trim();
      await look();
    }
    await box.tasks.publish('7', {});
    await look();
    await box.witness.checkpoint();
    await look();
    expect(told).toEqual(Array(6).fill(undefined));
  });

  it('finds what was written anew by a checkpoint that was kept', () => {
    const anchors = history.checkpoints.map(({ heads: _heads, ...checkpoint }) => canonical(checkpoint));
    expect(verified(exported(history), ...anchors).status).toBe(0);
    const forged = exported(record({ entries: 60, resources: 6, every: 20, actor: 'mallory' }));
    const { status, stdout } = verified(forged, ...anchors.slice(2));
    expect({ status, stdout }).toEqual({
      status: 65,
      stdout: 'bad record: checkpoint 3 is not the one that was anchored\n',
    });
  });

  it('finds, as ours does, a checkpoint whose tree is another than that of the entries: a proof could rest on it', () => {
    const [first] = history.checkpoints;
    const heads = (first?.heads ?? []).map((head, i) => (i === 2 ? { ...head, tree: sha256('another') } : head));
    const lines = exported({ ...history, checkpoints: [nextCheckpoint(undefined, heads, 5, sha256)] });
    const verifier = new Verifier({ digest: sha256 });
    for (const line of lines) verifier.line(line);
    const { resource, seq } = heads[2] ?? {};
    expect(verifier.finish().finding).toMatchObject({ kind: 'not-covered', checkpoint: 1, resource });
    expect(verified(lines)).toMatchObject({
      status: 65,
      stdout: `bad record: ${resource} ${seq} is not what a checkpoint says\n`,
    });
  });

  it('writes every number and every text as ours does', () => {
    const numbers = [
      0, -0, 1e21, 1e20, 1e-6, 1.5e-6, 1e-7, 123e-7, 5e-324, 1.7976931348623157e308, 333333333.33333329, 0.1, 4.5,
    ];
    const more = [
      2 ** 53,
      2 ** 64,
      -(2 ** 70),
      12345678901234567890,
      1e300,
      -1e-300,
      100,
      0.00001234,
      9.5e-5,
      1e16 + 2,
      1 / 3,
    ];
    const texts = ['\u0000\u001f"\\/\b\f\n\r\t\u007f\u0080\u2028', 'ﬀ😀é', ''];
    const detail = { numbers, more, texts, ﬀ: { '😀': 1, ﬀ: 2, a: null, b: true, '10': 1, '9': 2 } };
    const commands = [{ actor: 'a', component: 'b', command: 'c', outcome: 'd', events: [], detail }];
    const { entry, head } = nextEntry(emptyChain('lock/a'), { revision: 1, time: 2, commands }, sha256);
    const end = endLine({ heads: [head], entries: 1, checkpoints: 0 }, sha256);
    const result = verified([headerLine({ v: 1, time: 1, by: 'test' }, sha256), entryLine(entry), end]);
    expect(result).toMatchObject({ status: 0 });
  });

  it('agrees with ours about every mutation', () => {
    const lines: string[] = [];
    const known = new Map<string, number>();
    const numberOf = (line: string): number => {
      const found = known.get(line) ?? lines.push(line) - 1;
      known.set(line, found);
      return found;
    };
    const mutations = [...mutationsOf(exported(trimmed(history, 1, (resource) => resource.startsWith('lock'))))];
    const ours = mutations.map((mutation) => {
      const verifier = new Verifier({ digest: sha256 });
      for (const line of mutation.lines) verifier.line(line);
      return verifier.finish().finding === undefined ? 0 : 65;
    });
    writeFileSync(join(dir, 'records.json'), JSON.stringify(mutations.map((mutation) => mutation.lines.map(numberOf))));
    writeFileSync(join(dir, 'lines.json'), JSON.stringify(lines));
    const args = ['-c', MANY, PROGRAM, join(dir, 'lines.json'), join(dir, 'records.json')];
    const { stdout, stderr } = spawnSync('python3', args, { encoding: 'utf8' });
    expect(stderr).toBe('');
    const theirs = JSON.parse(stdout) as number[];
    expect(
      mutations.flatMap(({ what }, i) => (theirs[i] === ours[i] ? [] : `${what}: ${theirs[i]}, ours ${ours[i]}`)),
    ).toEqual([]);
    expect(ours.every((code) => code === 65)).toBe(true);
  });
});
