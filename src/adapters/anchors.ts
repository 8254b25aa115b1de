/**
 * Keeps checkpoints where a writer of the store cannot change them. The stored form is one line of canonical JSON without the
 * heads, whose root is in it.
 *
 *     file:PATH        appends a line, and waits until it is on the disk
 *     git:REF          adds a commit to a ref, with the line as its message; push the ref to keep it out of reach
 *     command:COMMAND  runs a shell command with the line in SIGNALBOX_CHECKPOINT, such as `gh issue comment`
 */
import { open } from 'node:fs/promises';
import { type Checkpoint, checkpointAnchor, checkpointProblem } from '../core/index.ts';
import { Failure, shown } from '../failure.ts';
import { gitEnvironment } from '../host/index.ts';
import { readForeign } from './foreign-file.ts';
import { printedBy } from './program.ts';

/** A place outside of the store. */
export interface Anchor {
  /** The place as the user named it: `file:/srv/anchors.jsonl`. */
  readonly name: string;
  /** Resolves once the checkpoint is kept. */
  keep(checkpoint: Checkpoint): Promise<void>;
  /** The checkpoints that are kept there. Only a file and a git ref can be read again. */
  kept(): Promise<readonly Checkpoint[]>;
}

export interface AnchorOptions {
  /** Where git and commands run. */
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

const TIMEOUT_MS = 60_000;
const LARGEST_BYTES = 256 * 1024 * 1024;
const REF = /^refs\/[A-Za-z0-9][A-Za-z0-9._/-]*$/;

/** A bare path is a file. */
export function anchorAt(place: string, options: AnchorOptions): Anchor {
  const [, kind = 'file', rest = ''] = /^(?:(file|git|command):)?(.*)$/s.exec(place) ?? [];
  if (rest === '')
    throw new Failure('invalid', `anchor ${shown(place)}: expected file:PATH, git:REF or command:COMMAND`);
  if (kind === 'git') return gitAnchor(place, rest, options);
  return kind === 'command' ? commandAnchor(place, rest, options) : fileAnchor(place, rest);
}

function fileAnchor(name: string, path: string): Anchor {
  return {
    name,
    async keep(checkpoint) {
      const file = await open(path, 'a', 0o644).catch((cause: Error) =>
        fail(`${path} cannot be opened: ${cause.message}`),
      );
      try {
        await file.write(`${checkpointAnchor(checkpoint)}\n`);
        await file.sync();
      } finally {
        await file.close();
      }
    },
    async kept() {
      const bytes = await readForeign(path, { name: path, limitBytes: LARGEST_BYTES }).catch((cause: Error) =>
        cause instanceof Failure ? fail(cause.message) : fail(`${path} cannot be read: ${cause.message}`),
      );
      return checkpointsIn(bytes.toString('utf8').split('\n'), path);
    },
  };
}

function gitAnchor(name: string, named: string, { cwd, env }: AnchorOptions): Anchor {
  const ref = named.startsWith('refs/') ? named : `refs/signalbox/${named}`;
  if (!REF.test(ref) || ref.includes('..'))
    throw new Failure('invalid', `anchor ${shown(name)}: ${shown(ref)} is no name of a ref`);
  const self = { GIT_AUTHOR_NAME: 'signalbox', GIT_AUTHOR_EMAIL: 'signalbox@localhost' };
  const committer = { GIT_COMMITTER_NAME: 'signalbox', GIT_COMMITTER_EMAIL: 'signalbox@localhost' };
  const environment = { ...gitEnvironment(env), ...self, ...committer };
  const git = async (...args: readonly string[]): Promise<string> => {
    const printed = await printedBy('git', args, { cwd, env: environment, timeoutMs: TIMEOUT_MS });
    if (printed.exitCode !== 0) fail(`git ${args[0]}: ${printed.stderr.trim()}`);
    return printed.stdout.trim();
  };
  const tip = (): Promise<string> => git('for-each-ref', '--format=%(objectname)', ref);
  return {
    name,
    async keep(checkpoint) {
      const before = await tip();
      const tree = await git('hash-object', '-w', '-t', 'tree', '/dev/null');
      const parent = before === '' ? [] : ['-p', before];
      const commit = await git('commit-tree', tree, ...parent, '-m', checkpointAnchor(checkpoint));
      // Fails if another process has moved the ref meanwhile; nothing is lost then.
      await git('update-ref', ref, commit, before === '' ? '0'.repeat(commit.length) : before);
    },
    async kept() {
      if ((await tip()) === '') fail(`there is no ref ${ref} in this repository`);
      return checkpointsIn((await git('log', '--reverse', '--format=%B', ref, '--')).split('\n'), ref);
    },
  };
}

function commandAnchor(name: string, command: string, { cwd, env }: AnchorOptions): Anchor {
  return {
    name,
    async keep(checkpoint) {
      const environment = { ...env, SIGNALBOX_CHECKPOINT: checkpointAnchor(checkpoint) };
      const options = { cwd, env: environment, timeoutMs: TIMEOUT_MS, isCutShort: true };
      const { exitCode, stderr } = await printedBy('sh', ['-c', command], options);
      if (exitCode !== 0) fail(`${shown(command)} ended with ${exitCode}: ${stderr.trim().slice(0, 500)}`);
    },
    async kept() {
      return fail(`${name} cannot be read again: save what it kept in a file, one checkpoint in each line`);
    },
  };
}

/** Skips other lines, such as the words around a checkpoint in a comment, but not a damaged checkpoint. */
function checkpointsIn(lines: readonly string[], where: string): readonly Checkpoint[] {
  const found = lines.flatMap((line, i) => {
    if (!line.startsWith('{')) return [];
    const value = parsed(line);
    const problem = checkpointProblem(value);
    if (problem !== undefined) throw new Failure('corrupt', `${where}: line ${i + 1} is no checkpoint: ${problem}`);
    return value as Checkpoint;
  });
  if (found.length === 0) throw new Failure('corrupt', `${where} has no checkpoint in it`);
  return found;
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return line;
  }
}

function fail(message: string): never {
  throw new Failure('unavailable', message);
}
