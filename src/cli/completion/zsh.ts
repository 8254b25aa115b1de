/** Completion for zsh. */
import { type Node, quoted, type Source, valueFlags } from './model.ts';

export function zshCompletion(nodes: readonly Node[]): string {
  const flags = valueFlags(nodes);
  const places = nodes.map(({ at }) => at).filter((at) => at !== '');
  return `#compdef signalbox
# Completion of signalbox for zsh. Use it: source <(signalbox completion zsh), after compinit.
_signalbox_names() {
  local -a names
  names=(\${(f)"$(signalbox $store $1 list --names 2>/dev/null)"})
  compadd -a names
}

_signalbox() {
  local at='' word cur=$words[CURRENT] prev=$words[CURRENT-1]
  local -a store offered
  integer i
  for (( i = 2; i < CURRENT; i++ )); do
    word=$words[i]
    case $word in
      (--) shift i words; (( CURRENT -= i )); _normal; return ;;
      (--store) store=(--store $words[i+1]); (( i += 1 )) ;;
      (${[...flags.keys()].filter((flag) => flag !== '--store').join('|')}) (( i += 1 )) ;;
      (-*) ;;
      (*) case $at/$word in (${places.join('|')}) at=$at/$word ;; esac ;;
    esac
  done
  case $prev in
${[...flags].map(([flag, source]) => `    (${flag}) ${offer(source)} return ;;`).join('\n')}
  esac
  if [[ $cur == -* ]]; then
    case $at in
${nodes.map((node) => `      (${quoted(node.at)}) ${describe('option', optionsOf(node), '-o')} ;;`).join('\n')}
    esac
  else
    case $at in
${nodes.map((node) => `      (${quoted(node.at)}) ${operands(node)} ;;`).join('\n')}
    esac
  fi
}

compdef _signalbox signalbox
`;
}

function optionsOf({ options }: Node): readonly (readonly [string, string])[] {
  return options.flatMap(({ flags, summary }) => flags.map((flag) => [flag, summary] as const));
}

function operands({ commands, argument }: Node): string {
  if (commands.length === 0) return offer(argument);
  return describe(
    'command',
    commands.map(({ name, summary }) => [name, summary]),
  );
}

function describe(what: string, items: readonly (readonly [string, string])[], flag = ''): string {
  const told = items.map(([name, summary]) => quoted(`${name.replaceAll(':', '\\:')}:${summary}`));
  return `offered=(${told.join(' ')}); _describe ${flag === '' ? '' : `${flag} `}${what} offered`;
}

const OFFERS = { files: '_files;', directories: '_files -/;', programs: '_command_names -e;', nothing: '' };

function offer(source: Source): string {
  if (source.from === 'words') return `offered=(${source.words.map(quoted).join(' ')}); compadd -a offered;`;
  return source.from === 'names' ? `_signalbox_names ${source.of};` : OFFERS[source.from];
}
