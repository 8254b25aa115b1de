/** `signalbox pipeline …`: runs phases in order, gated by guards. A pipeline survives the death of its driver. */
import type { Command } from './command.ts';
import { cancel, forget } from './pipeline/ending.ts';
import { drive } from './pipeline/drive-all.ts';
import { list, status } from './pipeline/status.ts';
import { resume } from './pipeline/resume.ts';
import { run } from './pipeline/run.ts';
import { validate } from './pipeline/validate.ts';

const EXAMPLES = `
Examples:
  signalbox pipeline validate release.yaml
  signalbox pipeline run release.yaml --id release-7 --env BRANCH=feature
  signalbox pipeline status release-7 --log
  signalbox pipeline resume release-7
  signalbox pipeline drive --all

A runbook:
  name: release
  phases:
    - name: build
      run: make dist
      timeout: 10m
    - name: deploy
      pre: { lockFree: incident }
      holds: { locks: [production], semaphores: [runners=1/4] }
      run: ./deploy.sh

Every step is stored before it is taken. If the process that drives a pipeline dies, resume continues from there;
drive --all does that by itself, for all pipelines.`;

export function define(command: Command): void {
  command.addHelpText('after', EXAMPLES).subcommands({ run, resume, drive, status, list, cancel, forget, validate });
}
