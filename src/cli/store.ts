/** The store of a command: opened as the options say, and closed whatever happens. */
import type { Command } from 'commander';
import { open, type OpenOptions } from '../runtime/open.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { interruptible } from './interrupt.ts';
import type { GlobalOptions } from './program.ts';

/** Commands are short: the maintenance is left to those who stay. */
export function openBox(command: Command, options: OpenOptions = {}): Promise<Signalbox> {
  const { store } = command.optsWithGlobals<GlobalOptions>();
  return open(store, { maintains: false, ...options });
}

/** `work` is told by its signal when to stop; whatever it waits for is given up, and the store is closed. */
export function withBox<T>(
  command: Command,
  work: (box: Signalbox, signal: AbortSignal) => Promise<T>,
  options?: OpenOptions,
  hurry?: AbortController,
): Promise<T> {
  return interruptible(async (signal) => {
    const box = await openBox(command, options);
    try {
      return await work(box, signal);
    } finally {
      await box.close();
    }
  }, hurry);
}

export function isJson(command: Command): boolean {
  return command.optsWithGlobals<GlobalOptions>().json === true;
}
