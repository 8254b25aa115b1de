/** `signalbox guard …`: conditions on locks, tasks, branches, files, issues and commands, for scripts and people. */
import type { Command } from './command.ts';
import { check, explain } from './guard/check.ts';
import { wait } from './guard/wait.ts';

const EXAMPLES = `
Examples:
  signalbox guard check -e 'lockFree: main-branch'
  signalbox run --lock main-branch --guard before-merge.yaml -- git push   checked while the lock is held
  signalbox guard wait before-merge.yaml --timeout 30m
  signalbox guard explain before-merge.yaml

A guard in YAML:
  id: before-merge
  condition:
    all:
      - lockFree: main-branch
      - branchClean: main
      - not: {fileExists: FREEZE}
      - any: [{taskDone: review-7}, {issueStatus: {id: 7, expected: done}}]
      - command: {cmd: npm test}`;

export function define(command: Command): void {
  command.addHelpText('after', EXAMPLES).subcommands({ check, wait, explain });
}
