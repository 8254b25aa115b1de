/** Exports Octokit from a file of its own, because it takes longer to load than most commands take to run. */
export { Octokit } from '@octokit/core';
