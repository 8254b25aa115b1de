/**
 * Finds the descriptors beyond stderr that this process was given for its command: `5>log`, the job server of make. When
 * Node starts, it marks all descriptors to be closed and opens some of its own among them, so we must tell them apart:
 *
 *     a file, a socket       given: Node has none at its start but /dev/null
 *     one end of a pipe      given: of its own pipes Node has both ends
 *     both ends of a pipe    given, if a process around us has it too
 */
import { readdirSync, readlinkSync } from 'node:fs';
import { readFromKernel, readStat } from '../../host/index.ts';

const CLOSED_ON_EXEC = 0o2000000;
const ACCESS = 0o3;
const MOST_ANCESTORS = 8;

export interface Descriptor {
  readonly number: number;
  /** The kernel's name of what the descriptor refers to. */
  readonly target: string;
}

/** Must be called before anything is opened. Descriptors that Node has not marked are inherited anyway. */
export function givenDescriptors(): readonly Descriptor[] {
  const all = descriptorsOf('self').filter(({ number, target }) => number > 2 && canBeGiven(target));
  const marked = all.map((one) => ({ ...one, flags: flagsOf(one.number) }));
  const isWhole = (target: string): boolean =>
    new Set(marked.filter((one) => one.target === target).map(({ flags }) => flags & ACCESS)).size > 1;
  let around: ReadonlySet<string> | undefined;
  const isGiven = ({ target }: Descriptor): boolean => {
    if (!target.startsWith('pipe:')) return true;
    return !isWhole(target) || (around ??= targetsAround()).has(target);
  };
  return marked.filter((one) => (one.flags & CLOSED_ON_EXEC) !== 0 && isGiven(one));
}

/** Half of the descriptors that Node opens at its start are of other kinds. */
function canBeGiven(target: string): boolean {
  return (target.startsWith('/') && target !== '/dev/null') || /^(?:pipe|socket):/.test(target);
}

/** The descriptors that still refer to the same file. */
export function stillOpen(given: readonly Descriptor[]): readonly number[] {
  return given.filter(({ number, target }) => targetOf('self', number) === target).map(({ number }) => number);
}

function targetsAround(): ReadonlySet<string> {
  const targets = new Set<string>();
  let pid = process.ppid;
  for (let steps = 0; steps < MOST_ANCESTORS && pid > 1; steps++) {
    for (const { target } of descriptorsOf(pid)) targets.add(target);
    pid = readStat(pid)?.parent ?? 0;
  }
  return targets;
}

function descriptorsOf(pid: number | 'self'): readonly Descriptor[] {
  let names: readonly string[];
  try {
    names = readdirSync(`/proc/${pid}/fd`);
  } catch {
    return [];
  }
  return names.map(Number).flatMap((number) => {
    const target = targetOf(pid, number);
    return target === undefined ? [] : [{ number, target }];
  });
}

function targetOf(pid: number | 'self', number: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/fd/${number}`);
  } catch {
    return undefined;
  }
}

function flagsOf(number: number): number {
  try {
    const [, flags = '0'] = /^flags:\s*([0-7]+)/m.exec(readFromKernel(`/proc/self/fdinfo/${number}`)) ?? [];
    return Number.parseInt(flags, 8);
  } catch {
    return 0;
  }
}
