/** tmux sessions, by the `tmux` on the PATH. */
import { Failure, shown } from '../failure.ts';
import type { Sessions } from './adapters.ts';
import { type Printed, printedBy } from './program.ts';

export interface SessionsOptions {
  /** The tmux server: a name, as for `tmux -L`. By default tmux's own choice. */
  readonly socketName?: string;
  readonly timeoutMs?: number;
  /** `TMUX_TMPDIR` and `TMUX` say where tmux looks for its server. */
  readonly env?: NodeJS.ProcessEnv;
}

const TIMEOUT_MS = 10_000;
const NO_SERVER = /^no server running on |^error connecting to .*\((No such file or directory|Connection refused)\)/m;
/** The server ended while we asked it. */
const SERVER_LEFT = /^(server exited|lost server)/m;

export function realSessions(options: SessionsOptions = {}): Sessions {
  const { socketName, timeoutMs = TIMEOUT_MS, env = process.env } = options;
  // Without -u and with a plain locale tmux prints "_" for every letter beyond ASCII.
  const args = [
    '-u',
    ...(socketName === undefined ? [] : ['-L', socketName]),
    'list-sessions',
    '-F',
    '#{session_name}',
  ];
  const list = (signal?: AbortSignal): Promise<Printed> =>
    printedBy('tmux', args, { env: { ...env, LC_ALL: 'C' }, timeoutMs, signal });

  return {
    async session(name, signal) {
      const wanted = asTmuxNamesIt(name);
      let printed = await list(signal);
      if (printed.exitCode !== 0 && SERVER_LEFT.test(printed.stderr)) printed = await list(signal);
      if (printed.exitCode === 0) return { alive: printed.stdout.split('\n').includes(wanted) };
      if (NO_SERVER.test(printed.stderr)) return { alive: false };
      throw new Failure('unavailable', `tmux: ${printed.stderr.trim() || `exit code ${printed.exitCode}`}`);
    },
  };
}

/**
 * The name as tmux shows it: `tmux new -s a.b` makes a session a_b, since "." and ":" are separators. Names are
 * compared here: as a target, tmux would take "a" for any session that begins so, "a:b" for a window, "$1" for a
 * number.
 */
export function asTmuxNamesIt(name: string): string {
  if (name === '' || /[\u0000-\u001f\u007f]/.test(name))
    throw new Failure('invalid', `${shown(name)} is not the name of a tmux session`);
  return name.replace(/[.:]/g, '_');
}
