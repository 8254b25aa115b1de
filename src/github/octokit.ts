/** Apart from all the rest: it takes longer to load than most commands take to run. */
export { Octokit } from '@octokit/core';
