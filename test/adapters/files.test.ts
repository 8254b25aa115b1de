// What the contract of files does not say: links, and what is not a file.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Files, localAdapters } from 'signalbox';

let folder: string;
let root: string;
let files: Files;

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'signalbox-files-')));
  root = join(folder, 'root');
  mkdirSync(join(root, 'docs'), { recursive: true });
  writeFileSync(join(root, 'docs', 'plan.md'), 'plan');
  writeFileSync(join(folder, 'secret'), 'secret');
  files = localAdapters({ root }).files;
});

afterEach(() => rmSync(folder, { recursive: true }));

const outside = async (path: string): Promise<void> => {
  await expect(files.file(path), path).rejects.toThrow(`leads out of ${root}`);
  await expect(files.text(path), path).rejects.toThrow(`leads out of ${root}`);
};

it('a link inside the root is followed', async () => {
  symlinkSync('docs', join(root, 'link'));
  symlinkSync(join(root, 'docs', 'plan.md'), join(root, 'absolute'));
  expect(await files.text('link/plan.md')).toEqual({ text: 'plan' });
  expect(await files.text('absolute')).toEqual({ text: 'plan' });
  expect(await files.file('link')).toEqual({ exists: true });
});

it('a link that leads outside is refused, and so is everything behind it, whether it exists or not', async () => {
  symlinkSync('../secret', join(root, 'relative'));
  symlinkSync(join(folder, 'secret'), join(root, 'absolute'));
  symlinkSync('..', join(root, 'up'));
  symlinkSync('up/secret', join(root, 'docs', 'over-another'));
  symlinkSync('../up/secret', join(root, 'docs', 'through-another'));
  for (const path of [
    'relative',
    'absolute',
    'up',
    'up/secret',
    'up/nothing',
    'up/nothing/at/all',
    'docs/through-another',
  ])
    await outside(path);
  expect(await files.file('docs/over-another')).toEqual({ exists: false });
});

it('a link to nothing that leads outside is refused: whether something is there is not ours to tell', async () => {
  symlinkSync('../nothing', join(root, 'relative'));
  symlinkSync(join(folder, 'nothing'), join(root, 'absolute'));
  symlinkSync('relative', join(root, 'twice'));
  symlinkSync('docs/../../nothing', join(root, 'round'));
  symlinkSync('nothing/../plan.md', join(root, 'docs', 'inside'));
  for (const path of ['relative', 'absolute', 'twice', 'round', 'relative/more', 'twice/more/still'])
    await outside(path);
  for (const path of ['docs/inside', 'docs/inside/more']) expect(await files.file(path)).toEqual({ exists: false });
});

it('an absolute path is taken if it is inside', async () => {
  expect(await files.text(join(root, 'docs', 'plan.md'))).toEqual({ text: 'plan' });
  await outside(join(folder, 'secret'));
  await outside('/etc/passwd');
  await outside(`${root}-beside`);
});

it('the root itself may be named by a link', async () => {
  symlinkSync(root, join(folder, 'alias'));
  const aliased = localAdapters({ root: join(folder, 'alias') }).files;
  expect(await aliased.text('docs/plan.md')).toEqual({ text: 'plan' });
  expect(await aliased.text(join(folder, 'alias', 'docs', 'plan.md'))).toEqual({ text: 'plan' });
  expect(await aliased.text(join(root, 'docs', 'plan.md'))).toEqual({ text: 'plan' });
});

it('a link to nothing does not exist, and links in a circle are an error', async () => {
  symlinkSync('nothing', join(root, 'dangling'));
  symlinkSync('two', join(root, 'one'));
  symlinkSync('one', join(root, 'two'));
  expect(await files.file('dangling')).toEqual({ exists: false });
  expect(await files.text('dangling')).toBeNull();
  await expect(files.file('one')).rejects.toThrow('in a circle');
  await expect(files.text('one/more')).rejects.toThrow('in a circle');
});

it('a FIFO and a device exist, have no text, and are not waited for', async () => {
  execFileSync('mkfifo', [join(root, 'fifo')]);
  expect(await files.file('fifo')).toEqual({ exists: true });
  await expect(files.text('fifo')).rejects.toThrow('no regular file');
  const devices = localAdapters({ root: '/dev' }).files;
  await expect(devices.text('zero')).rejects.toThrow('no regular file');
});

it('a file that does not know its size is read to its end', async () => {
  const kernel = localAdapters({ root: '/proc/self' }).files;
  expect((await kernel.text('status'))?.text).toContain('Pid:');
  const small = localAdapters({ root: '/proc/self', fileLimitBytes: 10 }).files;
  await expect(small.text('status')).rejects.toThrow('larger than 10 bytes');
});

it('a stray byte spoils no text, but what is no text is refused', async () => {
  writeFileSync(join(root, 'latin'), Buffer.from('gr\xfcn: all passed', 'latin1'));
  writeFileSync(join(root, 'wide'), Buffer.from('all passed', 'utf16le'));
  writeFileSync(join(root, 'marked'), '\ufeffall passed');
  expect(await files.text('latin')).toEqual({ text: 'gr\ufffdn: all passed' });
  expect(await files.text('marked')).toEqual({ text: 'all passed' });
  await expect(files.text('wide')).rejects.toThrow('not text in UTF-8');
});

it('a name that no file can have is an error', async () => {
  await expect(files.file('x'.repeat(300))).rejects.toThrow('too long');
});

it('a root that is not there is an error, and not a world without files', async () => {
  const nowhere = localAdapters({ root: join(folder, 'gone') }).files;
  await expect(nowhere.file('x')).rejects.toThrow('cannot be looked at');
});

it('nobody gets out by exchanging a directory for a link while it is looked at', async () => {
  // They change places as fast as the file system goes; whatever is answered, it is never the secret.
  mkdirSync(join(folder, 'theirs'));
  writeFileSync(join(folder, 'theirs', 'plan.md'), 'secret');
  symlinkSync('../theirs', join(root, 'link'));
  const swap = `const { renameSync: move, writeFileSync } = require('node:fs');
    writeFileSync('begun', '');
    for (;;) { move('docs', 'was'); move('link', 'docs'); move('docs', 'link'); move('was', 'docs'); }`;
  const over = new AbortController();
  const swapping = localAdapters({ root, commandGraceMs: 0 }).commands.run([process.execPath, '-e', swap], over.signal);
  while (!(await files.file('begun')).exists);
  const answers = new Set<string>();
  for (let round = 0; round < 3_000; round++) {
    answers.add((await files.text('docs/plan.md').catch(() => null))?.text ?? 'none');
  }
  over.abort(new Error('enough'));
  await expect(swapping).rejects.toThrow('enough');
  expect(answers).toContain('plan');
  expect(answers).not.toContain('secret');
});
