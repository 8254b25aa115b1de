/** The mark in the environment of everything that a child starts. */
import { readFileSync } from 'node:fs';

/** The environment variable that carries the marks, the outermost first, with dots between them. */
export const MARK = 'SIGNALBOX_RUN';

export function bearsMark(pid: number, mark: string): boolean {
  let environment: string;
  try {
    environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch {
    return false;
  }
  const entry = environment.split('\0').find((line) => line.startsWith(`${MARK}=`));
  return (
    entry
      ?.slice(MARK.length + 1)
      .split('.')
      .includes(mark) ?? false
  );
}
