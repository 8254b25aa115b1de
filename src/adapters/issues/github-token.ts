/** Finds the token for GitHub. No message ever shows it. */
import { Failure } from '../../failure.ts';
import { printedBy } from '../program.ts';

const GH_TIMEOUT_MS = 10_000;

/** Undefined if there is none: public repositories can be read without one. The URL is that of the API. */
export async function findToken(
  given: string | undefined,
  { host }: URL,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const named: readonly (readonly [string, string | undefined])[] = [
    ['the token that was given', given],
    ['GITHUB_TOKEN', env['GITHUB_TOKEN']],
    ['GH_TOKEN', env['GH_TOKEN']],
  ];
  for (const [source, value] of named) if (value !== undefined && value !== '') return checked(value, source);
  // `gh` knows the host by the name of its web pages.
  const known = host === 'api.github.com' ? 'github.com' : host;
  const printed = await printedBy('gh', ['auth', 'token', '--hostname', known], {
    env,
    timeoutMs: GH_TIMEOUT_MS,
    signal,
  }).catch(
    // `gh` is not installed, or hangs. But if the caller aborted, that is thrown.
    () => signal?.throwIfAborted(),
  );
  const found = printed?.exitCode === 0 ? printed.stdout.trim() : '';
  return found === '' ? undefined : checked(found, '`gh auth token`');
}

/** Checks the token here: Node would refuse it as a header with a message that shows it. */
function checked(value: string, source: string): string {
  const token = value.trim();
  if (/^[\u0021-\u007e]+$/.test(token)) return token;
  throw new Failure('invalid', `${source} is not a token for GitHub: it has characters that no token has`);
}
