# bash completion for perfctl(1): all candidates come from the tool itself. Event names have a colon, at which bash
# splits words: they are joined for the tool, and what stands before the last colon is taken off its answers.
_perfctl() {
  local line=${COMP_LINE:0:COMP_POINT} words=() word current stem="" candidate
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] || ${#words[@]} -eq 0 ]] && words+=("")
  current=${words[-1]}
  [[ $COMP_WORDBREAKS == *:* && $current == *:* ]] && stem=${current%"${current##*:}"}
  COMPREPLY=()
  while IFS= read -r candidate; do
    if [[ $candidate == "<file>" ]]; then
      compopt -o filenames
      while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
      return
    fi
    COMPREPLY+=("${candidate#"$stem"}")
  done < <("${words[0]}" complete "${words[@]:1}" 2>/dev/null)
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *: ]] && compopt -o nospace
}
complete -F _perfctl perfctl
