/** `lock break` and `sem break`: an administrator ends every hold. */
import type { Command } from 'commander';
import { userInfo } from 'node:os';
import { given, numberArgument } from './arguments.ts';
import { CliExit, EXIT } from './exit-code.ts';
import { addHolder } from './holding.ts';
import { print, printJson } from './output.ts';
import type { Breaking } from '../runtime/holds/terms.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { isJson, withBox } from './store.ts';

interface Breakable {
  readonly resource: string;
  break(by: Breaking): Promise<{ readonly broken: number }>;
}

/** Adds the options and the action; the caller has added the argument. */
export function addBreaking(command: Command, of: (box: Signalbox, name: string) => Breakable): void {
  addHolder(command, 'who breaks it (default: $SIGNALBOX_HOLDER, or user:NAME)')
    .requiredOption('--reason <text>', 'why; the holders get to see it')
    .option('--token <number>', 'spare holds that were granted after this token', numberArgument)
    .action(async (name: string, flags: { holder?: string; reason: string; token?: number }) => {
      await withBox(command, async (box) => {
        const by = flags.holder ?? (process.env['SIGNALBOX_HOLDER'] || loginHolder());
        const one = of(box, name);
        const { resource } = one;
        const { broken } = await one.break({ holder: by, reason: flags.reason, ...given({ token: flags.token }) });
        const what = flags.token === undefined ? 'it is not held' : `no hold has token ${flags.token} or an earlier one`;
        if (broken === 0)
          throw new CliExit(EXIT.no, `${resource}: ${what}, so there is nothing to break`, { resource, broken });
        if (isJson(command)) printJson({ resource, broken, by, reason: flags.reason });
        else print(`${resource}: ended ${broken} hold${broken > 1 ? 's' : ''}`);
      });
    });
}

export function loginHolder(): string {
  try {
    return `user:${userInfo().username}`;
  } catch {
    // In containers a user id may have no name.
    return `user:${process.getuid?.() ?? 'unknown'}`;
  }
}
