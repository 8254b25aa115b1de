/** Opens a command's store by its options, and closes it in the end. */
import type { Command } from './command.ts';
import { storeUrl } from '../runtime/location/location.ts';
import { open, type OpenOptions } from '../runtime/open.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { anyOf, interruptible } from './interrupt.ts';
import { openInTime, type WaitLimit } from './opening.ts';
import { refuseUnlessThroughServer, serverOf } from './remote/url.ts';

/** `limit`: the time that the user gave for all of it. */
export type BoxOptions = OpenOptions & { readonly limit?: WaitLimit };

/** Commands are short-lived, so they leave maintenance to long-lived processes. */
export function openBox(
  command: Command,
  { limit, ...options }: BoxOptions = {},
  leaving?: AbortSignal,
): Promise<Signalbox> {
  const { store } = command;
  const url = storeUrl(store);
  return openInTime({ url, leaving, limit }, (signal) => opened(command, store, { ...options, signal }));
}

async function opened(command: Command, store: string | undefined, options: OpenOptions): Promise<Signalbox> {
  const server = serverOf(command);
  if (server !== undefined) {
    refuseUnlessThroughServer(command, server);
    return (await import('./remote/open.ts')).openRemote(server, { ttlMs: options.sessionTtlMs });
  }
  return open(store, { maintains: false, component: 'cli', ...options });
}

/** Closes the store, however the work ends. */
export async function closing<T>(box: Signalbox, work: (box: Signalbox) => Promise<T>): Promise<T> {
  try {
    return await work(box);
  } finally {
    await box.close();
  }
}

/**
 * Aborts the signal of `work` on Ctrl-C, so that its waits end, and then closes the store. The same when the store is over:
 * nothing would come any more.
 */
export function withBox<T>(
  command: Command,
  work: (box: Signalbox, signal: AbortSignal) => Promise<T>,
  options: BoxOptions = {},
  hurry?: AbortController,
): Promise<T> {
  return interruptible(async (signal) => {
    return closing(await openBox(command, options, signal), async (box) => {
      const { over } = box;
      const result = await work(box, anyOf(signal, over));
      if (!signal.aborted) over?.throwIfAborted();
      return result;
    });
  }, hurry);
}
