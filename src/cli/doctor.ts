import type { Command } from 'commander';

export function define(_command: Command): void {}
