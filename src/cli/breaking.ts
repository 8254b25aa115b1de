/** `lock break` and `sem break`: an administrator ends every hold. */
import type { Command } from './command.ts';
import { userInfo } from 'node:os';
import type { Breaking } from '../runtime/holds/terms.ts';
import { given, numberArgument } from './arguments.ts';
import { CliExit, EXIT } from './exit-code.ts';
import { addHolder } from './holding.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { plural } from './output.ts';

interface Breakable {
  readonly resource: string;
  break(by: Breaking): Promise<{ readonly broken: number }>;
}

interface Flags {
  readonly holder?: string;
  readonly reason: string;
  readonly token?: number;
}

/** Adds the options and the action; the caller has added the argument. */
export function addBreaking(command: Command, of: (box: Signalbox, name: string) => Breakable): Command {
  return addHolder(command, 'who breaks it (default: $SIGNALBOX_HOLDER, or user:NAME)')
    .requiredOption('--reason <text>', 'why; the holders get to see it')
    .option('--token <number>', 'the newest token that you saw: a hold that was granted since stays', numberArgument)
    .inStore(async ({ box }, name: string, { holder, reason, token }: Flags) => {
      const by = holder ?? person();
      const one = of(box, name);
      const { resource } = one;
      const { broken } = await one.break({ holder: by, reason, ...given({ token }) });
      if (broken === 0) throw new CliExit(EXIT.no, `${resource}: ${nothingBroken(token)}`, { resource, broken });
      command.answer({ resource, broken, by, reason }, `${resource}: ended ${plural(broken, 'hold')}`);
    });
}

/** Who asks for what only a person decides, unless the user says so. */
export function person(): string {
  return process.env['SIGNALBOX_HOLDER'] || loginHolder();
}

/** `token`: the newest that the user had seen. */
export function nothingBroken(token: number | undefined): string {
  return token === undefined
    ? 'it is not held, so there is nothing to break'
    : `nothing that was granted up to token ${token} is still held, so nothing was broken`;
}

function loginHolder(): string {
  try {
    return `user:${userInfo().username}`;
  } catch {
    // In containers a user id may have no name.
    return `user:${process.getuid?.() ?? 'unknown'}`;
  }
}
