/** Says why the system refuses to start a program with `E2BIG`: what is too large, by how much, and how large it may be. */
import { readFileSync } from 'node:fs';

/** Linux allows 32 pages for one variable or argument. */
const LARGEST_ONE = 131_072;
const LARGEST_OF_ALL = 6 * 1024 * 1024;

export function isTooLarge(error: unknown): boolean {
  const { code, cause } = error as NodeJS.ErrnoException & { readonly cause?: unknown };
  return code === 'E2BIG' || (cause !== undefined && isTooLarge(cause));
}

export function tooLargeTold(env: NodeJS.ProcessEnv, args: readonly string[] = []): string {
  const variables = Object.entries(env)
    .filter(([, value]) => value !== undefined)
    .map(([name, value = '']) => ({ name, bytes: Buffer.byteLength(name) + Buffer.byteLength(value) + 2 }));
  const [largest] = variables.sort((one, other) => other.bytes - one.bytes);
  if (largest !== undefined && largest.bytes > LARGEST_ONE && process.platform === 'linux') {
    return (
      `its environment is too large: the variable ${largest.name} has ${largest.bytes} bytes, ` +
      `and the system passes on at most ${LARGEST_ONE} in one. Pass it on in a file`
    );
  }
  const inVariables = variables.reduce((sum, { bytes }) => sum + bytes, 0);
  const inArguments = args.reduce((sum, each) => sum + Buffer.byteLength(each) + 1, 0);
  const most = largestOfAll();
  const limit = most === undefined ? '' : `, and the system passes on at most ${most}`;
  const which = largest === undefined ? '' : ` The largest variable is ${largest.name}, with ${largest.bytes}`;
  return (
    `its environment is too large: ${inVariables} bytes in ${variables.length} variables, ` +
    `and ${inArguments} in its arguments${limit}.${which}`
  );
}

/** Linux allows a quarter of the largest stack for all of them. */
function largestOfAll(): number | undefined {
  if (process.platform === 'darwin') return 1024 * 1024;
  try {
    const [, soft = ''] = /^Max stack size\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? [];
    const stack = soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft);
    return Number.isNaN(stack) || soft === '' ? undefined : Math.min(Math.floor(stack / 4), LARGEST_OF_ALL);
  } catch {
    return undefined;
  }
}
