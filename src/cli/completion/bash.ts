/** Completion for bash, from 3.2 on. */
import { type Node, quoted, type Source, valueFlags } from './model.ts';

export function bashCompletion(nodes: readonly Node[]): string {
  const flags = valueFlags(nodes);
  const places = nodes.map(({ at }) => at).filter((at) => at !== '');
  const withValues = [...flags].filter(([, { from }]) => from !== 'nothing');
  return `# Completion of signalbox for bash. Use it: source <(signalbox completion bash)

# Not by compgen -W, which expands what it is given: names are written by others.
_signalbox_offer() {
  local word
  for word; do
    [[ $word == "$cur"* ]] && COMPREPLY+=("$(printf %q "$word")")
  done
}

_signalbox_lines() {
  local word
  while IFS= read -r word; do _signalbox_offer "$word"; done
}

_signalbox_names() {
  _signalbox_lines < <(signalbox "\${store[@]}" "$1" list --names 2>/dev/null)
}

# What bash has split off at a colon or an equals sign must not be offered again.
_signalbox_trim() {
  local split=\${cur%"\${cur##*[:=]}"} place
  [[ $COMP_WORDBREAKS == *:* && -n $split ]] || return
  for place in "\${!COMPREPLY[@]}"; do COMPREPLY[place]=\${COMPREPLY[place]#"$split"}; done
}

_signalbox() {
  # Split at spaces only: bash itself splits at colons too, which names and URLs contain.
  local line=\${COMP_LINE:0:COMP_POINT} at='' word i
  local -a words store
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  local last=$((\${#words[@]} - 1))
  local cur=\${words[last]} prev=\${words[last-1]}
  COMPREPLY=()
  for ((i = 1; i < last; i++)); do
    word=\${words[i]}
    case $word in
      --)
        if ((i + 1 == last)); then _signalbox_lines < <(compgen -c -- "$cur")
        else _signalbox_lines < <(compgen -f -- "$cur"); fi
        return ;;
      --store) store=(--store "\${words[i+1]}"); i=$((i + 1)) ;;
      ${[...flags.keys()].filter((flag) => flag !== '--store').join('|')}) i=$((i + 1)) ;;
      -*) ;;
      *) case $at/$word in
        ${places.join('|')}) at=$at/$word ;;
      esac ;;
    esac
  done
  case $prev in
${withValues.map(([flag, source]) => `    ${flag}) ${offer(source)}; _signalbox_trim; return ;;`).join('\n')}
    ${[...flags.keys()].filter((flag) => !withValues.some(([name]) => name === flag)).join('|')}) return ;;
  esac
  case $at in
${nodes.map(caseOf).join('\n')}
  esac
  _signalbox_trim
}

complete -F _signalbox signalbox
`;
}

function caseOf(node: Node): string {
  const options = node.options.flatMap(({ flags }) => flags).join(' ');
  const operand = offer(operandOf(node));
  return `    ${quoted(node.at)})
      if [[ $cur == -* ]]; then _signalbox_offer ${options}
      else ${operand}; fi ;;`;
}

function operandOf({ commands, argument }: Node): Source {
  return commands.length > 0 ? { from: 'words', words: commands.map(({ name }) => name) } : argument;
}

const OFFERS = {
  files: '_signalbox_lines < <(compgen -f -- "$cur")',
  directories: '_signalbox_lines < <(compgen -d -- "$cur")',
  programs: '_signalbox_lines < <(compgen -c -- "$cur")',
  nothing: ':',
};

function offer(source: Source): string {
  if (source.from === 'words') return `_signalbox_offer ${source.words.map(quoted).join(' ')}`;
  return source.from === 'names' ? `_signalbox_names ${source.of}` : OFFERS[source.from];
}
