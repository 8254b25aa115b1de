/** `signalbox pipeline …`: runs phases in order, gated by guards. A pipeline survives the death of its driver. */
import type { Command } from 'commander';
import { addCancel } from './pipeline/cancel.ts';
import { addDriveAll } from './pipeline/drive-all.ts';
import { addForget } from './pipeline/forget.ts';
import { addLooking } from './pipeline/status.ts';
import { addResume } from './pipeline/resume.ts';
import { addRun } from './pipeline/run.ts';
import { addValidate } from './pipeline/validate.ts';

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
  command.addHelpText('after', EXAMPLES);
  addRun(command.command('run'));
  addResume(command.command('resume'));
  addDriveAll(command.command('drive'));
  addLooking(command);
  addCancel(command.command('cancel'));
  addForget(command.command('forget'));
  addValidate(command.command('validate'));
}
