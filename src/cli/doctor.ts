/** `signalbox doctor`: checks the store and this machine, and says what to do about each problem. */
import type { Command } from './command.ts';
import { examine } from './doctor/examine.ts';
import type { Finding, Verdict } from './doctor/finding.ts';
import { interruptible } from './interrupt.ts';
import { type Colour, type Paint, paintFor, print, printable, printJson, screen } from './output.ts';

const EXAMPLES = `
Examples:
  signalbox doctor
  signalbox doctor --json | jq -r '.findings[] | select(.verdict != "ok") | .message'

Checks the store (reachable, writable, undamaged, how soon a change wakes a waiter), the holds in it (stale
holds, leases), and this machine (clock, file system, disk, inotify, versions).

Exit codes: 0 healthy (there may be warnings) · 1 not healthy · 69 the store cannot be used
            77 it refuses you`;

export function define(command: Command): void {
  command.addHelpText('after', EXAMPLES).action(async () => {
    const { store, findings, exitCode } = await interruptible(() => examine(command));
    if (command.isJson) printJson({ store, isHealthy: exitCode === 0, findings });
    else for (const finding of findings) tellFinding(finding, paintFor(screen()));
    process.exitCode = exitCode;
  });
}

const COLOURS: Readonly<Record<Verdict, Colour>> = { ok: 'green', warn: 'yellow', fail: 'red' };

function tellFinding({ check, verdict, message, advice }: Finding, paint: Paint): void {
  print(`${paint(COLOURS[verdict], verdict.padEnd(4))}  ${check.padEnd(11)}  ${printable(message)}`);
  if (advice !== undefined) print(`${' '.repeat(19)}${paint('dim', `→ ${printable(advice)}`)}`);
}
