/** `signalbox github …`: locks on GitHub Issues, by hand and around a command. */
import type { Command } from './command.ts';
import { fake } from './github/fake.ts';
import { lock, unlock } from './github/locking.ts';
import { queue, status } from './github/status.ts';
import { run } from './github/run.ts';

const EXAMPLES = `
Examples:
  signalbox github run 42 --worker agent:7 -- ./fix.sh     the issue is yours while it runs
  signalbox github status                                  every locked issue
  TOKEN=$(signalbox github lock 42 --worker agent:7 --ttl 30m)
  signalbox github unlock 42 --worker agent:7
  signalbox github fake                                    a GitHub on this machine, to try it out

The repository is --repo, else GITHUB_REPO. The token is GITHUB_TOKEN, GH_TOKEN, or what gh auth token
prints; it needs contents:write and issues:write. GITHUB_API_URL is for GitHub Enterprise.

Exit codes: 0 done · 64 usage · 69 GitHub unreachable · 75 not acquired · 76 lost · 77 not the owner, or refused`;

export function define(command: Command): void {
  command.addHelpText('after', EXAMPLES).subcommands({ lock, unlock, run, status, queue, fake });
}
