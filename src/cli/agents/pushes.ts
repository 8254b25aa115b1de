/** Finds the pushes in what an agent is about to run, and the branches that each would change. */
import { commandsIn, type Found, nameOf, resolved, type Word } from './shell-text.ts';

export interface Push {
  /** Where git would look for the repository; undefined if that is unknown. */
  readonly directory: string | undefined;
  /** The names of the branches. `current`: the one that is checked out there. `all`: every branch. */
  readonly branches: readonly (string | { readonly name: 'current' | 'all' })[];
  /** Where `git` stands in the text, if it does. */
  readonly at: number | undefined;
}

/** Options of git with a value in the next word. */
const GIT_VALUES = new Set(['-C', '-c', '--git-dir', '--work-tree', '--namespace', '--super-prefix', '--config-env']);
const SHELLS = new Set(['sh', 'bash', 'zsh', 'dash', 'ksh']);
const DEEPEST = 8;
const PUSH_VALUES = new Set(['-o', '--push-option', '--repo', '--receive-pack', '--exec']);
/** Programs that run the command in their arguments. */
const WRAPPERS = new Set(
  'sudo doas env command exec nohup nice ionice time timeout stdbuf setsid xargs builtin caffeinate'.split(' '),
);

/** `lock`: a push inside `signalbox run --lock LOCK` is made under it. */
export function pushesIn(
  text: string,
  directory: string | undefined,
  lock: string,
  home?: string,
  depth = 0,
): readonly Push[] {
  return commandsIn(text, directory, home).flatMap(({ words, directory: here }) => {
    const command = withoutRun(words, lock);
    const script = depth < DEEPEST ? scriptOf(command) : undefined;
    const inner = script === undefined ? [] : pushesIn(script, here, lock, home, depth + 1);
    return [...pushOf({ words: command, directory: here }, home), ...inner.map((push) => ({ ...push, at: undefined }))];
  });
}

/** What `sh -c` is given. */
function scriptOf(words: readonly Word[]): string | undefined {
  const shell = words.findIndex(({ text }) => SHELLS.has(nameOf(text)));
  const option = words.findIndex(({ text }, place) => shell >= 0 && place > shell && /^-[a-z]*c[a-z]*$/.test(text));
  return option < 0 ? undefined : words[option + 1]?.text;
}

function pushOf({ words, directory }: Found, home: string | undefined): readonly Push[] {
  const place = programIn(words);
  const rest = place === undefined ? [] : words.slice(place);
  const [git] = rest;
  if (git === undefined || nameOf(git.text) !== 'git') return [];
  let where = directory;
  let at = 1;
  for (; rest[at]?.text.startsWith('-') === true; at++) {
    const option = rest[at]?.text ?? '';
    const value = rest[at + 1];
    if (option === '-C' && value !== undefined) where = resolved(where, value, home);
    if (GIT_VALUES.has(option)) at += 1;
  }
  if (rest[at]?.text !== 'push') return [];
  const branches = branchesOf(rest.slice(at + 1));
  return branches.length === 0 ? [] : [{ directory: where, branches, at: git.at }];
}

/** The command that a `signalbox run` runs; nothing if that run holds the lock. Another command is as it was. */
function withoutRun(words: readonly Word[], lock: string): readonly Word[] {
  const place = words.findIndex(({ text }) => nameOf(text) === 'signalbox');
  if (place < 0 || words[place + 1]?.text !== 'run') return words;
  const rest = words.slice(place + 2);
  const end = rest.findIndex(({ text }) => text === '--');
  const options = rest.slice(0, end < 0 ? undefined : end).map(({ text }) => text);
  const locks = options.flatMap((text, at) =>
    text === '--lock' ? [options[at + 1]] : [/^--lock=(.*)$/s.exec(text)?.[1]],
  );
  if (locks.includes(lock)) return [];
  return end < 0 ? [] : rest.slice(end + 1);
}

function programIn(words: readonly Word[]): number | undefined {
  const [first] = words;
  if (first === undefined) return undefined;
  if (!WRAPPERS.has(nameOf(first.text))) return 0;
  const place = words.findIndex(({ text }) => nameOf(text) === 'git');
  return place < 0 ? undefined : place;
}

/** None if no branch is changed. */
function branchesOf(words: readonly Word[]): Push['branches'] {
  const named: Word[] = [];
  const flags = new Set<string>();
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as Word;
    if (word.text === '--') continue;
    if (!word.text.startsWith('-') || word.text === '-') named.push(word);
    else if (PUSH_VALUES.has(word.text)) at += 1;
    else flags.add(word.text);
  }
  const has = (...all: readonly string[]): boolean => all.some((flag) => flags.has(flag));
  if (has('-n', '--dry-run', '-h', '--help')) return [];
  if (has('--all', '--branches', '--mirror')) return [{ name: 'all' }];
  const [, ...refs] = named;
  if (refs.length === 0) return has('--tags') ? [] : [{ name: 'current' }];
  return refs.flatMap((ref, at) => (ref.text === 'tag' || refs[at - 1]?.text === 'tag' ? [] : branchOf(ref)));
}

function branchOf({ text, isPlain }: Word): Push['branches'] {
  const ref = text.replace(/^\+/, '');
  if (ref === ':') return [{ name: 'all' }];
  const to = ref.includes(':') ? ref.slice(ref.lastIndexOf(':') + 1) : ref;
  // What a variable holds is not known: mostly it is the name of the branch that is checked out.
  if (to === 'HEAD' || to === '@' || (!isPlain && !/^[\w/.-]+$/.test(to))) return [{ name: 'current' }];
  if (to.startsWith('refs/') && !to.startsWith('refs/heads/')) return [];
  const branch = to.replace(/^refs\/heads\//, '');
  return [branch.includes('*') ? { name: 'all' } : branch];
}
