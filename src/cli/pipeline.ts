/** `signalbox pipeline …`: phases in order, gated by guards, that survive the death of whoever drives them. */
import type { Command } from 'commander';
import { addValidate } from './pipeline/validate.ts';

const EXAMPLES = `
Examples:
  signalbox pipeline validate release.yaml`;

export function define(command: Command): void {
  command.addHelpText('after', EXAMPLES);
  addValidate(command.command('validate'));
}
