# bash completion for perfctl(1): all candidates come from the tool itself. Names have colons and groups begin with @, at
# which bash splits words: they are joined for the tool, and what stands before the last one is taken off its answers. A word in
# quotes that are still open, as an expression is, bash does not split.

# The words of $1 as the tool would have them, into `words`, and the quote that is open at its end into `quote`.
_perfctl_split() {
  local text=$1 word="" c i has_word=""
  words=() quote=""
  for ((i = 0; i < ${#text}; i++)); do
    c=${text:i:1}
    if [[ $c == "\\" && $quote != "'" ]]; then
      word+=${text:++i:1} has_word=yes
    elif [[ -n $quote && $c == "$quote" ]]; then
      quote=""
    elif [[ -z $quote && ($c == "'" || $c == '"') ]]; then
      quote=$c has_word=yes
    elif [[ -z $quote && $c == [[:space:]] ]]; then
      [[ -z $has_word ]] || words+=("$word")
      word="" has_word=""
    else
      word+=$c has_word=yes
    fi
  done
  words+=("$word")
}

_perfctl() {
  local words quote current stem="" breaks="" candidate word
  _perfctl_split "${COMP_LINE:0:COMP_POINT}"
  current=${words[-1]}
  [[ $COMP_WORDBREAKS == *:* ]] && breaks+=:
  [[ $COMP_WORDBREAKS == *@* ]] && breaks+=@
  [[ -n $breaks && -z $quote ]] && stem=${current%"${current##*[$breaks]}"}
  COMPREPLY=()
  while IFS= read -r candidate; do
    if [[ $candidate == "<file>" ]]; then
      compopt -o filenames
      while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
      return
    fi
    if [[ $candidate == "<command>" ]]; then
      [[ $current != */* ]] || compopt -o filenames
      while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -c -- "$current")
      return
    fi
    COMPREPLY+=("${candidate#"$stem"}")
  done < <("${words[0]}" complete "${words[@]:1}" 2>/dev/null)
  # One candidate would end the quotes, but an expression goes on behind a name: two leave them open.
  if [[ -n $quote && ${#COMPREPLY[@]} -eq 1 && (${words[-2]} == --where || ${words[-2]} == --filter || " ${words[*]} " == *" filter "*) ]]; then
    COMPREPLY=("${COMPREPLY[0]} ==" "${COMPREPLY[0]} !=")
  fi
  [[ -n $quote || (${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[:/]) ]] && compopt -o nospace
}
complete -F _perfctl perfctl
