# bash completion for perfctl(1): all candidates come from the tool itself. Names have colons and groups begin with @, at
# which bash splits words: they are joined for the tool, and what stands before the last one is taken off its answers.
_perfctl() {
  local line=${COMP_LINE:0:COMP_POINT} words=() word current stem="" breaks="" candidate
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] || ${#words[@]} -eq 0 ]] && words+=("")
  current=${words[-1]}
  [[ $COMP_WORDBREAKS == *:* ]] && breaks+=:
  [[ $COMP_WORDBREAKS == *@* ]] && breaks+=@
  [[ -n $breaks ]] && stem=${current%"${current##*[$breaks]}"}
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
