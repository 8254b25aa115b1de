/** The commands that install `better-sqlite3` for this very installation of signalbox, with the directory to type them in. */
import { existsSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The last version of better-sqlite3 with a ready-made build for Node 20: later ones have to be compiled there. */
export const VERSION_FOR_NODE_20 = '12.9.0';

const FOR_NODE_20 = `better-sqlite3@${VERSION_FOR_NODE_20}`;

export type Installation =
  | { readonly kind: 'global' }
  /** Installed by `npx`, in its cache. */
  | { readonly kind: 'npx' }
  | { readonly kind: 'local'; readonly project: string }
  /** A clone, or a link to one. */
  | { readonly kind: 'clone'; readonly clone: string };

export function installCommand(installation = installationOf(fileURLToPath(import.meta.url))): string {
  switch (installation.kind) {
    case 'global':
      return `npm install --global ${FOR_NODE_20}`;
    case 'npx':
      return `npx --package signalbox --package ${FOR_NODE_20} signalbox …`;
    case 'local':
      return `cd ${quoted(installation.project)} && npm install ${FOR_NODE_20}`;
    case 'clone':
      return `cd ${quoted(installation.clone)} && npm run build`;
  }
}

/** The command that builds the native part: npm may have been told not to run install scripts, and pnpm asks first. */
export function rebuildCommand(installation = installationOf(fileURLToPath(import.meta.url))): string {
  const rebuild = 'rebuild better-sqlite3 --ignore-scripts=false';
  switch (installation.kind) {
    case 'global':
      return `npm ${rebuild} --global`;
    case 'npx':
      // npx keeps its packages under names that only npx knows.
      return `npm cache npx rm && ${installCommand(installation)}`;
    case 'local':
      return `cd ${quoted(installation.project)} && npm ${rebuild} (pnpm: pnpm approve-builds)`;
    case 'clone':
      return `cd ${quoted(installation.clone)} && npm ${rebuild}`;
  }
}

/** `file` is one of signalbox's own files. */
export function installationOf(file: string, exists: (path: string) => boolean = existsSync): Installation {
  const at = file.indexOf(`${sep}node_modules${sep}`);
  if (at < 0) return { kind: 'clone', clone: cloneOf(file, exists) };
  const project = file.slice(0, at);
  if (project.includes(`${sep}_npx${sep}`)) return { kind: 'npx' };
  // npm keeps global packages in a directory that is no package itself.
  return exists(join(project, 'package.json')) ? { kind: 'local', project } : { kind: 'global' };
}

function cloneOf(file: string, exists: (path: string) => boolean): string {
  for (let directory = dirname(file); directory !== dirname(directory); directory = dirname(directory)) {
    if (exists(join(directory, 'package.json'))) return directory;
  }
  return dirname(file);
}

function quoted(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
