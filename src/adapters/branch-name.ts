/**
 * Checks branch names before git sees them. A text that is not a branch name can mean something else to git (`-x` an
 * option, `@{-1}` the previous branch, `HEAD~1` a commit, `a..b` a range), and the answer "there is no such branch" would
 * let a misspelt guard pass.
 */
import { Failure, shown } from '../failure.ts';

export function checkBranchName(name: string): void {
  const problem = problemOf(name);
  if (problem !== undefined) throw new Failure('invalid', `${shown(name)} is not a branch name: ${problem}`);
}

function problemOf(name: string): string | undefined {
  if (name === '') return 'it is empty';
  if (name.startsWith('-')) return 'it begins with "-"';
  if (name === 'HEAD' || name === '@') return 'it means the branch that is checked out; write the name of the branch';
  if (/\p{Surrogate}/u.test(name)) return 'it is half a character';
  const odd = /[\u0000-\u0020\u007f~^:?*[\\]/.exec(name)?.[0] ?? /\.\.|@\{|\/\//.exec(name)?.[0];
  if (odd !== undefined) return `it contains ${JSON.stringify(odd)}`;
  if (name.startsWith('/') || name.endsWith('/')) return 'it begins or ends with "/"';
  if (name.endsWith('.')) return 'it ends with "."';
  const parts = name.split('/');
  if (parts.some((part) => part.startsWith('.'))) return 'a part of it begins with "."';
  if (parts.some((part) => part.endsWith('.lock'))) return 'a part of it ends with ".lock"';
  return undefined;
}
