/** Refuses stores on the command line that no other process can open. */
import type { Command } from 'commander';
import { shown } from '../failure.ts';
import { isEtcdUrl, withoutPassword } from '../store/index.ts';
import { CliExit, EXIT } from './exit-code.ts';
import { isServerUrl } from './remote/url.ts';

const ACCEPTED = 'expected file:DIRECTORY, etcd://HOST:PORT, etcds://HOST:PORT, or http://HOST:PORT of a server';

/** With a store in memory every command would have its own, and would protect nothing without any sign of it. */
export function refuseUnshared(command: Command): void {
  // They print a script or write files, and open no store; or they must not fail because of one.
  if (command.name() === 'completion' || command.parent?.name() === 'agents') return;
  const { store } = command.optsWithGlobals<{ readonly store?: string }>();
  const url = store ?? process.env['SIGNALBOX_URL'] ?? '';
  if (url === '' && store === undefined) return;
  if (url.startsWith('file:') || isEtcdUrl(url) || isServerUrl(url)) return;
  const where = store === undefined ? 'SIGNALBOX_URL' : '--store';
  const why = url.startsWith('memory:')
    ? ': it would end with this command, and no other process sees it (memory: is for the library)'
    : '';
  const hint = /^[./~]/.test(url) || (url !== '' && !url.includes(':')) ? `; a directory is written file:${url}` : '';
  throw new CliExit(EXIT.usage, `${where}: the store is ${shown(withoutPassword(url))}${why}; ${ACCEPTED}${hint}`);
}
