/** `signalbox members …`: who is alive, what they own, and being a member for as long as a command runs. */
import type { Command } from './command.ts';
import { join } from './members/join.ts';
import { list, watch } from './members/list.ts';

const EXAMPLES = `
Examples:
  signalbox members list
  signalbox members watch
  signalbox members join agent-7 --asset shard/3 -- ./agent.sh

A member is there for as long as its process renews its session: no heartbeats of your own. The coordinator is the first
member in id order; for work that must run only once, use: signalbox lead`;

export function define(command: Command): void {
  command.addHelpText('after', EXAMPLES).subcommands({ list, watch, join });
}
