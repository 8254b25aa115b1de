/**
 * A private directory among the temporary files, for the files of one command. Its name says which process made it, so that
 * another process can remove it if that one was killed.
 *
 *     signalbox-task-HOST-PID-START-XXXXXX/      HOST: boot and namespaces, as a digest
 *         child.json                             the command that uses it, written before that begins
 */
import { lstatSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { offspringFrom } from './claims.ts';
import { sha256 } from './digest.ts';
import { isGone } from './ending.ts';
import { readRegularFile } from './foreign-file.ts';
import { GatedChild } from './gated-child.ts';
import { ifPossible } from './if-possible.ts';
import { remainsOf } from './offspring.ts';
import { isProvenGone, type ProcessIdentity, thisHost, thisProcess } from './process.ts';

const CHILD = 'child.json';
const MOST_BYTES = 4096;
const NAME = /^signalbox-(?:task|phase)-([0-9a-f]{16})-(\d{1,10})-(\d{1,20})-\w{6}$/;
/** Others may write there, but each can rename and remove only what is theirs. */
const STICKY = 0o1000;
const WRITABLE_BY_OTHERS = 0o022;

export class WorkingDirectory {
  readonly path: string;

  constructor(kind: 'task' | 'phase') {
    const host = hostDigest();
    const self = thisProcess();
    // Where processes have no identity, nobody can tell whether the directory is still needed.
    const maker = host === undefined || self === undefined ? '' : `${host}-${self.pid}-${self.start}-`;
    this.path = mkdtempSync(join(tmpdir(), `signalbox-${kind}-${maker}`));
  }

  /** Starts the command that uses the directory, behind its gate, and notes it there: it may outlive this process. */
  async start(...[program, argv, env, gate]: Parameters<typeof GatedChild.start>): Promise<GatedChild> {
    const child = await GatedChild.start(program, argv, env, gate);
    try {
      writeFileSync(join(this.path, CHILD), JSON.stringify(child.offspring), { mode: 0o600 });
      return child;
    } catch (error) {
      await child.abandon();
      throw error;
    }
  }

  /** Removes the directory, and those that processes of this user left behind when they were killed. */
  remove(): void {
    ifPossible(() => rmSync(this.path, { recursive: true, force: true }));
    ifPossible(removeAbandoned);
  }
}

/**
 * Removes only directories of this user alone, whose maker is proven gone, and in which no command can be at work. What is in
 * them is of no use to anyone: the store has the data of a task, and no other process ever learns of outputs that a killed driver
 * did not read.
 */
function removeAbandoned(): void {
  const tmp = tmpdir();
  const { mode } = statSync(tmp);
  // Where others could put a directory of theirs in this place meanwhile, nothing is removed.
  if ((mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) === 0) return;
  for (const name of readdirSync(tmp)) {
    const maker = makerIn(name);
    if (maker === undefined || !isProvenGone(maker)) continue;
    const path = join(tmp, name);
    ifPossible(() => {
      if (isOwnDirectory(path) && isUnused(path)) rmSync(path, { recursive: true, force: true });
    });
  }
}

/** Undefined if the name is another, or was given on another host: processes there cannot be seen from here. */
function makerIn(name: string): ProcessIdentity | undefined {
  const [, digest, pid, start] = NAME.exec(name) ?? [];
  const host = thisHost();
  if (host === undefined || pid === undefined || start === undefined || digest !== hostDigest()) return undefined;
  return { ...host, pid: Number(pid), start };
}

/** Links are not followed: what they lead to is not ours to remove. */
function isOwnDirectory(path: string): boolean {
  const found = lstatSync(path);
  return found.isDirectory() && found.uid === process.geteuid?.() && (found.mode & 0o077) === 0;
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
