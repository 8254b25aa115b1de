/** `signalbox github fake`: a GitHub on this machine, for trying locks out and for tests of scripts. */
import type { Command } from '../command.ts';
import { whenAborted } from '../../clock.ts';
import type * as Serve from '../../github/local/serve.ts';
import { given, numberArgument, portArgument } from '../arguments.ts';
import { interruptible } from '../interrupt.ts';

interface FakeOptions {
  readonly port: number;
  readonly socket?: string;
  readonly repo: string;
  readonly issues: number;
  readonly delay: number;
}

export function fake(command: Command): void {
  command
    .about(`serve a local GitHub until it is stopped; state is in memory

Examples:
  signalbox github fake --port 4010 &
  export GITHUB_API_URL=http://127.0.0.1:4010 GITHUB_REPO=local/repository GITHUB_TOKEN=any
  signalbox github run 1 --worker agent:7 -- ./fix.sh
  curl -d '{"kind":"dropped-after","match":"PATCH"}' http://127.0.0.1:4010/_local/faults

Faults: broken-before, dropped-after, refused, refused-after, old-read, secondary-limit, limit-reached.`)
    .option('--port <n>', 'the port on loopback; 0 for any free port', portArgument, 0)
    .option('--socket <path>', 'a unix socket instead of a port, which gh can use (http_unix_socket)')
    .option('--repo <owner/name>', 'its one repository', 'local/repository')
    .option('--issues <n>', 'how many open issues it has', numberArgument, 10)
    .duration('--delay', 'delay each request by this time', '0')
    .action(async ({ port, socket, repo, issues, delay }: FakeOptions) => {
      const { importFile } = await import('../pipeline/import-file.ts');
      // Comes from the testing kit, which is not part of the command line's bundle.
      const { serveLocalGitHub } = (await importFile('../github/local/serve.js')) as typeof Serve;
      const server = await serveLocalGitHub({ port, repository: repo, delayMs: delay, ...given({ socket }) });
      for (let number = 1; number <= issues; number++) server.github.repository.addIssue(number);
      const url = socket ?? server.url;
      command.answer({ url, repository: repo }, `export GITHUB_API_URL=${url} GITHUB_REPO=${repo} GITHUB_TOKEN=local`);
      try {
        await interruptible(whenAborted);
      } finally {
        await server.close();
      }
    });
}
