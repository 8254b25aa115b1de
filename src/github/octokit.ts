/** In a file of its own, because Octokit takes longer to load than most commands take to run. */
export { Octokit } from '@octokit/core';
