/** Completion for fish. */
import { type Node, quoted, type Source, valueFlags } from './model.ts';

export function fishCompletion(nodes: readonly Node[]): string {
  const flags = valueFlags(nodes);
  const places = nodes.map(({ at }) => at).filter((at) => at !== '');
  return `# Completion of signalbox for fish. Use it: signalbox completion fish | source
function __signalbox_at
    set -l at ''
    set -l skip 0
    for word in (commandline -opc)[2..]
        if test $skip = 1
            set skip 0
            continue
        end
        switch $word
            case --
                echo --
                return
            case ${[...flags.keys()].join(' ')}
                set skip 1
            case '-*'
            case '*'
                switch "$at/$word"
                    case ${places.join(' ')}
                        set at "$at/$word"
                end
        end
    end
    echo "$at"
end

function __signalbox_names
    set -l words (commandline -opc)
    set -l store
    if set -l place (contains -i -- --store $words)
        set store --store $words[(math $place + 1)]
    end
    signalbox $store $argv[1] list --names 2>/dev/null
end

complete -c signalbox -e
complete -c signalbox -f
complete -c signalbox -n 'test (__signalbox_at) = --' -F
${nodes.flatMap(linesOf).join('\n')}
`;
}

function linesOf(node: Node): readonly string[] {
  const here = `complete -c signalbox -n ${quoted(`test "(__signalbox_at)" = "${node.at}"`).replace('"(', '"$(')}`;
  const commands = node.commands.map(({ name, summary }) => `${here} -a ${name} -d ${quotedInFish(summary)}`);
  const argument = node.commands.length > 0 ? [] : offer(here, node.argument);
  const options = node.options.flatMap(({ flags, summary, value }) => {
    const named = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`));
    const option = `${here} ${named.join(' ')} -d ${quotedInFish(summary)}`;
    return value === undefined ? [option] : [`${option} -x${valueWords(value)}`];
  });
  return [...commands, ...argument, ...options];
}

function offer(here: string, source: Source): readonly string[] {
  if (source.from === 'files') return [`${here} -F`];
  if (source.from === 'programs') return [`${here} -a '(__fish_complete_command)'`];
  return source.from === 'nothing' ? [] : [`${here}${valueWords(source)}`];
}

function valueWords(source: Source): string {
  if (source.from === 'words') return ` -a ${quotedInFish(source.words.map((word) => `"${word}"`).join(' '))}`;
  if (source.from === 'names') return ` -a '(__signalbox_names ${source.of})'`;
  return source.from === 'directories' ? " -a '(__fish_complete_directories)'" : '';
}

/** In fish a backslash escapes inside single quotes; in the other shells it does not. */
function quotedInFish(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
