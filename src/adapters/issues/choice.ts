/** Chooses the issue tracker: a path, `github:OWNER/NAME`, or the default place. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Failure, shown } from '../../failure.ts';
import type { Issues } from '../adapters.ts';
import { githubIssues, type GitHubIssuesOptions } from './github.ts';
import { openTracker } from './local.ts';

/** Under the root. */
export const USUAL_TRACKER = join('.signalbox', 'issues.json');

export interface ChoiceOptions {
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;
  readonly github?: Omit<GitHubIssuesOptions, 'repository'>;
}

/** Chooses at the first question; if that fails, chooses again at the next. */
export function chosenIssues(meant: string | Issues | undefined, options: ChoiceOptions): Issues {
  if (typeof meant === 'object') return meant;
  let chosen: Issues | undefined;
  const issues = (): Issues => (chosen ??= choose(meant ?? (options.env['SIGNALBOX_ISSUES'] || undefined), options));
  return {
    async issues(filter, signal) {
      return issues().issues(filter, signal);
    },
    async issue(id, signal) {
      return issues().issue(id, signal);
    },
  };
}

function choose(meant: string | undefined, { root, env, github }: ChoiceOptions): Issues {
  if (meant === undefined) {
    const usual = join(root, USUAL_TRACKER);
    if (existsSync(usual)) return openTracker(usual);
    const ways = `--issues github:OWNER/NAME, --issues FILE, SIGNALBOX_ISSUES with either, or ${usual}`;
    throw new Failure('not-found', `it asks about issues, but no issue tracker is set up; name one with ${ways}`);
  }
  const [, scheme, rest = ''] = /^([a-z][a-z0-9+.-]+):(.*)$/is.exec(meant) ?? [];
  if (scheme === undefined) return openTracker(resolve(root, meant));
  if (scheme === 'github') return githubIssues({ env, ...github, repository: rest });
  throw new Failure('invalid', `${shown(meant)}: issues are at github:OWNER/NAME or at the path of a local tracker`);
}
