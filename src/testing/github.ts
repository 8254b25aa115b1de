/** A GitHub in this process, for tests of programs that lock issues. */
import type { GitHubClient } from '../github/client.ts';
import { fetchFrom } from '../github/local/fetch.ts';
import { LocalGitHub, type LocalGitHubOptions } from '../github/local/local-github.ts';
import { OctokitClient } from '../github/octokit-client.ts';

/** A GitHub in this process. */
export interface FakeGitHub {
  /** Its issues, refs and comments, and its faults. */
  readonly github: LocalGitHub;
  /** For `new LockManager({ client })`. */
  readonly client: GitHubClient;
  /** A client with another token. */
  clientOf(token: string): GitHubClient;
}

/** Starts a GitHub in this process. */
export function fakeGitHub(options: LocalGitHubOptions = {}): FakeGitHub {
  const github = new LocalGitHub(options);
  const clientOf = (token: string): GitHubClient =>
    new OctokitClient({ githubRepo: github.name, token, baseUrl: github.url, fetch: fetchFrom(github), env: {} });
  return { github, client: clientOf('local'), clientOf };
}
