/**
 * A private directory among the temporary files, for the files of one command. Its name says which process made it, so that
 * another process can remove it if that one was killed.
 *
 *     signalbox-work-UID/                    of one user, so nobody else can put anything there
 *         task-HOST-PID-START-XXXXXX/        HOST: boot and namespaces, as a digest
 *             child.json                     the command that uses it, written before that begins
 */
import { lstatSync, mkdtempSync, writeFileSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { offspringFrom } from './claims.ts';
import { sha256 } from './digest.ts';
import { isGone } from './ending.ts';
import { readRegularFile } from './foreign-file.ts';
import { GatedChild } from './gated-child.ts';
import { ifPossible } from './if-possible.ts';
import { remainsOf } from './offspring.ts';
import { ownTemporaryDirectory } from './own-temporary-directory.ts';
import { isProvenGone, type ProcessIdentity, thisHost, thisProcess } from './process.ts';

const CHILD = 'child.json';
const MOST_BYTES = 4096;
const PARENT = 'signalbox-work';
const NAME = /^(?:task|phase)-([0-9a-f]{16})-(\d{1,10})-(\d{1,20})-\w{6}$/;
/** A worker ends a command every moment, and seldom is there anything to remove. */
const SWEEP_EVERY_MS = 60_000;

let sweptAt = Number.NEGATIVE_INFINITY;

export class WorkingDirectory {
  readonly path: string;

  constructor(kind: 'task' | 'phase') {
    const host = hostDigest();
    const self = thisProcess();
    const parent = ifPossible(() => ownTemporaryDirectory(PARENT));
    // Where processes have no identity, or others could replace the directory, no other process ever removes it.
    this.path =
      host === undefined || self === undefined || parent === undefined
        ? mkdtempSync(join(tmpdir(), `signalbox-${kind}-`))
        : mkdtempSync(join(parent, `${kind}-${host}-${self.pid}-${self.start}-`));
  }

  /** Starts the command that uses the directory, behind its gate, and notes it there: it may outlive this process. */
  async start(...[program, argv, env, gate]: Parameters<typeof GatedChild.start>): Promise<GatedChild> {
    const child = await GatedChild.start(program, argv, env, gate);
    // On a full disk the note stays empty, and so keeps the directory. The command runs all the same.
    ifPossible(() => writeFileSync(join(this.path, CHILD), JSON.stringify(child.offspring), { mode: 0o600 }));
    return child;
  }

  /** Removes the directory and, now and then, those that processes of this user left behind when they were killed. */
  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true }).catch(() => undefined);
    const now = performance.now();
    if (now - sweptAt < SWEEP_EVERY_MS) return;
    sweptAt = now;
    await removeAbandoned().catch(() => undefined);
  }
}

/**
 * Removes only directories whose maker is proven gone, and in which no command can be at work. What is in them is of no use to
 * anyone: the store has the data of a task, and no other process ever learns of outputs that a killed driver did not read.
 */
export async function removeAbandoned(): Promise<void> {
  const parent = ownTemporaryDirectory(PARENT);
  const digest = hostDigest();
  if (digest === undefined) return;
  for (const name of await readdir(parent)) {
    const maker = makerIn(name, digest);
    if (maker === undefined || !isProvenGone(maker)) continue;
    const path = join(parent, name);
    // A link is not followed: what it leads to is not ours to remove.
    const isAbandoned = ifPossible(() => lstatSync(path).isDirectory() && isUnused(path)) === true;
    if (isAbandoned) await rm(path, { recursive: true, force: true }).catch(() => undefined);
  }
}

/** Undefined if the name is another, or was given on another host: processes there cannot be seen from here. */
function makerIn(name: string, digest: string): ProcessIdentity | undefined {
  const [, of, pid, start] = NAME.exec(name) ?? [];
  const host = thisHost();
  if (host === undefined || pid === undefined || start === undefined || of !== digest) return undefined;
  return { ...host, pid: Number(pid), start };
}

/** Without a note, no command has begun. One that cannot be read says nothing, so the directory stays. */
function isUnused(path: string): boolean {
  const file = join(path, CHILD);
  if (lstatSync(file, { throwIfNoEntry: false }) === undefined) return true;
  const note = readRegularFile(file, MOST_BYTES);
  const child = note && offspringFrom(JSON.parse(note.toString('utf8')));
  return child !== undefined && isGone(remainsOf(child));
}

function hostDigest(): string | undefined {
  const host = thisHost();
  return host && sha256(`${host.boot} ${host.space} ${host.timeSpace}`).slice(0, 16);
}
