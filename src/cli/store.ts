/** Opens a command's store by its options, and closes it in the end. */
import type { Command } from 'commander';
import { open, type OpenOptions } from '../runtime/open.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { interruptible } from './interrupt.ts';
import type { GlobalOptions } from './program.ts';
import { refuseUnlessThroughServer, serverOf } from './remote/url.ts';

/** Commands are short-lived, so they leave maintenance to long-lived processes. */
export async function openBox(command: Command, options: OpenOptions = {}): Promise<Signalbox> {
  const { store } = command.optsWithGlobals<GlobalOptions>();
  const server = serverOf(command);
  if (server !== undefined) {
    refuseUnlessThroughServer(command, server);
    return (await import('./remote/open.ts')).openRemote(server, { ttlMs: options.sessionTtlMs });
  }
  return open(store, { maintains: false, component: 'cli', ...options });
}

/** Aborts the signal of `work` on Ctrl-C, so that its waits end, and then closes the store. */
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
