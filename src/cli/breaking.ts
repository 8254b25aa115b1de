/** `lock break` and `sem break`: an administrator ends every hold. */
import type { Command } from 'commander';
import { userInfo } from 'node:os';
import { CliExit, EXIT } from './exit-code.ts';
import { addHolder } from './holding.ts';
import { print, printJson } from './output.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { isJson, withBox } from './store.ts';

interface Breakable {
  readonly resource: string;
  break(by: { readonly holder: string; readonly reason: string }): Promise<{ readonly broken: number }>;
}

/** Adds the options and the action; the caller has added the argument. */
export function addBreaking(command: Command, of: (box: Signalbox, name: string) => Breakable): void {
  addHolder(command, 'who breaks it (default: $SIGNALBOX_HOLDER, or user:NAME)')
    .requiredOption('--reason <text>', 'why; the holders get to see it')
    .action(async (name: string, flags: { readonly holder?: string; readonly reason: string }) => {
      await withBox(command, async (box) => {
        const by = flags.holder ?? (process.env['SIGNALBOX_HOLDER'] || loginHolder());
        const one = of(box, name);
        const { resource } = one;
        const { broken } = await one.break({ holder: by, reason: flags.reason });
        if (broken === 0)
          throw new CliExit(EXIT.no, `${resource}: it is not held, so there is nothing to break`, { resource, broken });
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
