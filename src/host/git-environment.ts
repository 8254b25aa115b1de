/** Calls git so that it inspects the intended repository, asks no questions, changes nothing and runs no programs. */

/**
 * The variables that are kept: these few say how git is set up on this machine. The others name the repository of a
 * hook, trace, or change what git prints.
 */
const KEPT =
  /^GIT_(CONFIG_(GLOBAL|SYSTEM|NOSYSTEM|COUNT|KEY_\d+|VALUE_\d+)|EXEC_PATH|CEILING_DIRECTORIES|DISCOVERY_ACROSS_FILESYSTEM)$/;

export function gitEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(([name]) => !name.startsWith('GIT_') || KEPT.test(name));
  return {
    ...Object.fromEntries(kept),
    LC_ALL: 'C',
    GIT_TERMINAL_PROMPT: '0',
    // Inspecting must not write, nor wait for a writer.
    GIT_OPTIONAL_LOCKS: '0',
    GIT_NO_LAZY_FETCH: '1',
    // Unlike `protocol.allow`, no configuration overrides it: a repository's `uploadpack` names a program.
    GIT_ALLOW_PROTOCOL: 'none',
  };
}

/** A repository's own configuration can name programs. Inspecting needs none of these. */
export const QUIET: readonly string[] = [
  '--no-pager',
  ...['core.fsmonitor=false', 'core.hooksPath=/dev/null', 'core.askPass=', 'credential.helper='].flatMap((setting) => [
    '-c',
    setting,
  ]),
];
