/** The `list` commands: look, warn of what cannot be read, and print names for scripts or a table for people. */
import type { Command } from './command.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { Malformed } from '../runtime/stored.ts';
import { look } from './read-only.ts';
import { print, printable, printJson, printName, warnOf } from './output.ts';
import { type Layout, screenLayout } from './table.ts';

export interface Listing<Found, One> {
  /** Only the names, one per line. */
  readonly names: true | undefined;
  /** `onMalformed` gets the keys that are skipped because they cannot be read. */
  look(box: Signalbox, onMalformed: (one: Malformed) => void): Promise<Found>;
  all(found: Found): readonly One[];
  name(one: One): string;
  json(found: Found, malformed: readonly Malformed[]): object;
  /** The sentence for an empty list. */
  readonly nothing: string;
  lines(all: readonly One[], layout: Layout): readonly string[];
}

export async function printList<Found, One>(command: Command, listing: Listing<Found, One>): Promise<Found> {
  const malformed: Malformed[] = [];
  const { found, missing } = await look(command, (box) => listing.look(box, (one) => void malformed.push(one)));
  const all = listing.all(found);
  if (command.isJson) {
    printJson(listing.json(found, malformed));
    return found;
  }
  warnOf(malformed);
  if (listing.names) for (const one of all) printName(listing.name(one));
  else if (missing !== undefined) print(printable(`${missing} ${listing.nothing}`));
  else if (all.length === 0) print(listing.nothing);
  else for (const line of listing.lines(all, screenLayout())) print(line);
  return found;
}
