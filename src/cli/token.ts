/** `signalbox token …`: the tokens that let programs use a server. */
import { type Command, InvalidArgumentError, Option } from './command.ts';
import { type Role, ROLES } from '../core/index.ts';
import { withoutPassword } from '../store/index.ts';
import { localTokenFile, readLocalToken } from '../runtime/location/local-token.ts';
import { storeUrl } from '../runtime/location/location.ts';
import type { TokenView } from '../runtime/access/tokens.ts';
import { time } from '../json/time.ts';
import { tokenJson } from '../json/token.ts';
import { given } from './arguments.ts';
import { CliExit, EXIT } from './exit-code.ts';
import { look } from './read-only.ts';
import { handOver, jsonText, print, printable, printJson } from './output.ts';
import { notThroughServer, serverOf } from './remote/url.ts';
import { printTable } from './table.ts';

const EXAMPLES = `
Examples:
  signalbox token create ci --role worker --holder 'job:*' --expires 90d
  signalbox token list
  signalbox token revoke 3f9c0a51d2e86b47
  curl -H "Authorization: Bearer $(signalbox token local)" http://127.0.0.1:7300/v1/who

A viewer looks. A worker also takes part: locks, slots, tasks, guards. An administrator may do everything: force, break,
configure, write keys, resume and cancel pipelines, give out tokens. The store keeps only a hash of each token.`;

export function define(command: Command): void {
  command.addHelpText('after', EXAMPLES).subcommands({ create, list, revoke, local });
}

interface CreateFlags {
  readonly role: Role;
  readonly holder: readonly string[];
  readonly expires?: number;
  readonly link?: URL;
}

function create(command: Command): void {
  command
    .about(`make a token and print it, once

Examples:
  TOKEN=$(signalbox token create ci --role worker --expires 90d)
  signalbox token create agents --role worker --holder 'agent:*'
  signalbox token create wall-screen --role viewer --json | jq -r .secret
  signalbox token create visitors --role viewer --expires 7d --link https://box.example.org:8443

The link of a viewer lets those who have it look, and change nothing. It carries the token in its fragment, which
browsers do not send; with a view of the dashboard behind the #, it opens that.

Nobody can print the token again. If it is lost, revoke it and make another one.`)
    .argument('<name>', 'what people call it')
    .addOption(new Option('--role <role>', 'what it allows').choices(ROLES).makeOptionMandatory())
    .list('--holder <pattern>', 'a worker acts only for these holders, such as agent:* (repeatable)')
    .duration('--expires', 'servers refuse it after this time (default: never)')
    .option(
      '--link <url>',
      'print a link that opens the dashboard there with the token, instead of the token',
      pageArgument,
    )
    .inStore(async ({ box }, name: string, { role, holder, expires, link: page }: CreateFlags) => {
      const holders = holder.length > 0 ? holder : undefined;
      const { secret, token } = await box.tokens.create({ name, role, ...given({ ttlMs: expires, holders }) });
      try {
        const link = page === undefined ? undefined : linkWith(page, secret);
        handOver(command.isJson ? jsonText({ secret, ...given({ link }), ...tokenJson(token) }) : (link ?? secret));
      } catch {
        await box.tokens.revoke(token.id);
        throw new CliExit(EXIT.unreachable, 'the token could not be printed, so it was revoked');
      }
    });
}

function pageArgument(text: string): URL {
  if (/^https?:/i.test(text) && URL.canParse(text)) return new URL(text);
  throw new InvalidArgumentError('expected the address of a server, such as http://127.0.0.1:7300');
}

/** The page takes the token out of its address, and then opens the rest of the address. */
export function linkWith(page: URL, secret: string): string {
  const link = new URL(page);
  const view = link.hash.slice(1);
  link.hash = new URLSearchParams({ token: secret, ...(view !== '' && { view }) }).toString();
  return link.href;
}

function list(command: Command): void {
  command
    .description('list the tokens, without their secrets')
    .addHelpText('after', '\nExamples:\n  signalbox token list\n  signalbox token list --json | jq -r .tokens[].id')
    .action(async () => {
      const { found } = await look(command, (box) => box.tokens.list());
      if (command.isJson) return printJson({ tokens: found.map(tokenJson) });
      if (found.length === 0) return print('There are no tokens.');
      const rows = found.map((token) => ({
        cells: [token.id, token.name, token.role, (token.holders ?? ['any']).join(', '), endTold(token)],
      }));
      printTable(['ID', 'NAME', 'ROLE', 'HOLDERS', 'EXPIRES'], rows);
    });
}

function revoke(command: Command): void {
  command
    .about(`end a token: every server refuses it from now on

Example:
  signalbox token revoke 3f9c0a51d2e86b47

Exit code 1 if there is no such token.`)
    .argument('<id>', 'the id of the token, as token list prints it')
    .inStore(async ({ box }, id: string) => {
      if (!(await box.tokens.revoke(id))) throw new CliExit(EXIT.no, `there is no token ${printable(id)}`);
      command.answer({ outcome: 'revoked', id }, `${id}: revoked`);
    });
}

function local(command: Command): void {
  command
    .about(`print the local administrator's token, which serve made

Example:
  curl -H "Authorization: Bearer $(signalbox token local)" http://127.0.0.1:7300/v1/status

It lies in a file next to the store that only you can read. Exit code 1 if no server has made it yet.`)
    .action(() => {
      const server = serverOf(command);
      if (server !== undefined) {
        const why = 'the local token lies in a file beside the store';
        throw notThroughServer('signalbox token local', server, why, 'use signalbox token create to make another one');
      }
      const url = storeUrl(command.store);
      const secret = readLocalToken(url);
      if (secret === undefined) {
        const what = `there is no local token for ${withoutPassword(url)} yet; signalbox serve makes it`;
        throw new CliExit(EXIT.no, what);
      }
      command.answer({ secret, file: localTokenFile(url) }, secret);
    });
}

function endTold({ expiresAt }: TokenView): string {
  if (expiresAt === undefined) return 'never';
  return expiresAt <= Date.now() ? 'expired' : (time(expiresAt) ?? '');
}
