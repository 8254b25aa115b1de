/** Which stores are servers, and which commands work through one. */
import type { Command } from 'commander';
import { CliExit, EXIT } from '../exit-code.ts';

export function isServerUrl(url: string): boolean {
  return /^https?:\/\//i.test(url);
}

const ALL = 'all';

/**
 * Which subcommands of each command. The others need the store itself: they run commands under its leases, read keys of all kinds,
 * or write whole files.
 */
const THROUGH_A_SERVER: Readonly<Record<string, string>> = {
  ...{ run: ALL, lead: ALL, lock: ALL, sem: ALL, who: ALL, status: ALL, members: ALL, guard: ALL },
  task: 'publish run work claim renew release complete fail retry requeue forget show list watch',
  pipeline: 'list status cancel resume forget',
  bus: 'get put delete',
  token: 'create list revoke',
  witness: 'tail show record checkpoint verify export',
  events: 'tail',
};

export function refuseUnlessThroughServer(command: Command, url: string): void {
  const path = pathOf(command);
  const [name = '', subcommand = ''] = path.split(' ');
  const some = THROUGH_A_SERVER[name];
  if (some === ALL || some?.split(' ').includes(subcommand) === true) return;
  const [why, instead] = INSTEAD[path] ?? [];
  throw notThroughServer(`signalbox ${path}`, url, why, instead?.replace('URL', url));
}

/** Why a command does not work through a server, and what does. */
const INSTEAD: Readonly<Record<string, readonly [why: string | undefined, instead: string]>> = {
  top: [undefined, 'use signalbox status --watch, or open URL in a browser: the dashboard shows the same'],
  'pipeline run': ['the commands of a pipeline run where it is started', 'start it where its commands are to run'],
  'witness trim': [
    'what it deletes has to be exported in the same step',
    'use signalbox witness export to keep a copy',
  ],
  export: [undefined, 'use signalbox status --json to see what there is'],
};

export function notThroughServer(what: string, url: string, why = 'it needs the store itself', instead = ''): CliExit {
  const how = 'run it where the store is, with --store file:DIRECTORY or etcd://HOST:PORT';
  return new CliExit(
    EXIT.usage,
    `${what} does not work through a server (${url}): ${why}\n  ${instead === '' ? '' : `${instead}, or `}${how}`,
  );
}

/** The server that a command is to use; undefined if it opens the store itself. */
export function serverOf(command: Command): string | undefined {
  const { store } = command.optsWithGlobals<{ readonly store?: string }>();
  const url = store ?? process.env['SIGNALBOX_URL'] ?? '';
  return isServerUrl(url) ? url : undefined;
}

/** `task publish`. */
function pathOf(command: Command): string {
  const names: string[] = [];
  for (let one: Command | null = command; one?.parent; one = one.parent) names.unshift(one.name());
  return names.join(' ');
}
