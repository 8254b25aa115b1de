/** `signalbox bus get|put|delete|list|watch`: plain keys of the store, which other programs can read and write too. */
import type { Command } from './command.ts';
import { whenAborted } from '../clock.ts';
import type { BusPair } from '../runtime/bus/bus.ts';
import { CliExit, EXIT } from './exit-code.ts';
import { countArgument, type FollowFlags, following } from './events.ts';
import { printList } from './listing.ts';
import { look } from './read-only.ts';
import { paintFor, print, printable, printJson, printText, screen, tell } from './output.ts';
import { withBox } from './store.ts';
import { tableLines } from './table.ts';
import { textArgument } from './task/arguments.ts';

const EXAMPLES = `
Examples:
  signalbox bus put config/colour red
  signalbox bus get config/colour
  signalbox bus list config/
  signalbox bus delete config/colour
  signalbox bus watch config/ --json

On etcd these are plain keys, shared with every program that uses it. The keys that signalbox itself needs are kept
apart from them.`;

export function define(command: Command): void {
  command.addHelpText('after', EXAMPLES).subcommands({ get, put, delete: remove, list, watch });
}

function get(command: Command): void {
  command
    .description('print the value of a key')
    .argument('<key>', 'which key')
    .addHelpText('after', '\nExample:\n  signalbox bus get config/colour\n\nExit code 1 if there is no such key.')
    .action(async (key: string) => {
      const { found } = await look(command, async (box) => {
        const { results } = await box.bus.transaction([], [{ do: 'get', key }]);
        const [read] = results;
        return read?.do === 'get' ? read.pair : null;
      });
      if (found === null) throw new CliExit(EXIT.no, `there is no key ${printable(key)}`);
      const { value, modRevision, version } = found;
      if (command.isJson) printJson({ key, value, revision: modRevision, version });
      else if (screen().isTTY === true) print(value.replace(/\n$/, ''));
      // As it is, for scripts: a line break after it would become part of a file.
      else printText(value);
    });
}

function put(command: Command): void {
  command
    .about(`set a key

Examples:
  signalbox bus put config/colour red
  signalbox bus put config/app.json @app.json
  signalbox bus put leader "$HOSTNAME" --if-absent
  signalbox bus put counter 8 --if-value 7

Exit code 1, and no change, if a condition does not hold.`)
    .argument('<key>', 'which key')
    .argument('<value>', 'its value: text, @FILE, or - for stdin', (text) => textArgument(text)[1])
    .option('--if-absent', 'only if there is no such key yet')
    .option('--if-value <text>', 'only if it has this value: compare and swap')
    .action(async (key: string, value: string, flags: { ifAbsent?: true; ifValue?: string }) => {
      if (flags.ifAbsent === true && flags.ifValue !== undefined)
        throw new CliExit(EXIT.usage, '--if-absent and --if-value exclude each other');
      await withBox(command, async (box) => {
        const compare = [
          ...(flags.ifAbsent === true ? [{ key, target: 'version', is: '=', than: 0 } as const] : []),
          ...(flags.ifValue === undefined ? [] : [{ key, target: 'value', is: '=', than: flags.ifValue } as const]),
        ];
        const { succeeded, revision, results } = await box.bus.transaction(
          compare,
          [{ do: 'put', key, value }],
          [{ do: 'get', key }],
        );
        const [read] = results;
        const now = !succeeded && read?.do === 'get' ? (read.pair?.value ?? null) : undefined;
        if (now !== undefined) {
          const is = now === null ? 'does not exist' : `is ${printable(now)}`;
          throw new CliExit(EXIT.no, `${printable(key)} ${is}; nothing was changed`, { key, value: now });
        }
        if (command.isJson) printJson({ key, revision });
      });
    });
}

function remove(command: Command): void {
  command
    .description('delete a key')
    .argument('<key>', 'which key')
    .addHelpText('after', '\nExample:\n  signalbox bus delete config/colour\n\nExit code 1 if there is no such key.')
    .action(async (key: string) => {
      const { deleted } = await withBox(command, (box) => box.bus.delete(key));
      if (deleted === 0) throw new CliExit(EXIT.no, `there is no key ${printable(key)}`, { key });
      if (command.isJson) printJson({ key, deleted: true });
    });
}

function list(command: Command): void {
  command
    .about(`list keys and their values

Examples:
  signalbox bus list
  signalbox bus list config/
  signalbox bus list config/ --names

The keys of tasks are left out, unless the prefix asks for them: /tasks/.`)
    .argument('[prefix]', 'only keys that begin with this', '')
    .option('--names', 'print only the keys, one per line')
    .action(async (prefix: string, { names }: { names?: true }) => {
      const isWanted = ({ key }: BusPair): boolean => prefix.startsWith('/') || !key.startsWith('/tasks/');
      await printList(command, {
        names,
        look: async (box) => (await box.bus.list(prefix)).filter(isWanted),
        all: (found) => found,
        name: ({ key }) => key,
        json: (found) => ({
          keys: found.map(({ key, value, modRevision, version }) => ({ key, value, revision: modRevision, version })),
        }),
        nothing: prefix === '' ? 'There are no keys.' : `No key begins with ${printable(prefix)}.`,
        lines: (found, layout) =>
          tableLines(
            ['KEY', 'VALUE'],
            found.map(({ key, value }) => ({ cells: [key, value] })),
            layout,
          ),
      });
    });
}

function watch(command: Command): void {
  command
    .about(`print changes of keys as they happen, one per line

Examples:
  signalbox bus watch config/
  signalbox bus watch config/ --json | jq -r 'select(.type == "PUT") | .key'`)
    .argument('<prefix>', 'of the keys')
    .option('-n, --count <number>', 'stop after this many changes', countArgument)
    .duration('--for', 'stop after this time')
    .action((prefix: string, flags: FollowFlags) =>
      following(command, flags, async (box, signal) => {
        const over = new AbortController();
        let left = flags.count ?? Number.POSITIVE_INFINITY;
        const paint = paintFor(screen());
        await box.bus.watch(prefix, ({ type, key, value, revision }) => {
          if (left <= 0) return;
          const what = paint(type === 'PUT' ? 'green' : 'yellow', type.padEnd(6));
          const line = `${what}  ${printable(key)}  ${printable(value ?? '')}`.trimEnd();
          command.answer({ type, key, value, revision }, line);
          if (type !== 'RESYNC') left -= 1;
          if (left <= 0) over.abort();
        });
        tell('signalbox: waiting for changes; Ctrl-C stops');
        await whenAborted(AbortSignal.any([signal, over.signal]));
      }),
    );
}
