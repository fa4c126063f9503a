#!/bin/bash
# The look at the tree that needs no running program: what git holds (or, outside git, what lies
# there) is formatted, in its layers, in its limits and in the Makefile's lists.
set -u
cd "$(dirname "$0")/../.." || exit 1

if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    mapfile -t files < <(git ls-files)
else
    mapfile -t files < <(find . -type f -not -path './build/*' -not -path './vellum-data/*' \
        -not -name '*.pyc' | sed 's,^\./,,')
fi
# A file being moved or removed may still stand in the index.
present=() sources=() scripts=()
for file in "${files[@]}"; do
    [ -f "$file" ] || continue
    present+=("$file")
    case $file in
    *.c | *.h) sources+=("$file") ;;
    *.py) ;;
    *) if head -n 1 "$file" | grep -q '^#!.*sh$'; then scripts+=("$file"); fi ;;
    esac
done

failed=0
tests/check/rules.py "${present[@]}" || failed=1
if [ ${#sources[@]} -gt 0 ]; then
    # Only the heads of the complaints: the cure is the same for all.
    clang-format --dry-run -Werror --ferror-limit=1 "${sources[@]}" 2>&1 | grep error: | cut -d: -f1,2 |
        sed 's/$/: not formatted (clang-format -i)/'
    [ "${PIPESTATUS[0]}" = 0 ] || failed=1
fi
# Names of commands, options and kernel devices, and words in the tests' data, are no slips.
if command -v codespell >/dev/null; then
    words=()
    for file in "${present[@]}"; do
        case $file in */package-lock.json | *.png | *.gz | *.xz) ;; *) words+=("$file") ;; esac
    done
    codespell --quiet-level 3 --ignore-words-list "get's,oll,smove,exat,ake,iif,hel,fo,te,ba,nd,infinit,optin" \
        "${words[@]}" || failed=1
fi
if command -v shellcheck >/dev/null && [ ${#scripts[@]} -gt 0 ]; then
    shellcheck -x "${scripts[@]}" || failed=1
fi
# A fault that lost its place in the sources would be found only by the run of mutants.
texts=$(tests/mutants/run --texts) || { echo "$texts" && failed=1; }
[ $failed = 0 ] && echo "check: ${#present[@]} files, nothing found"
exit $failed
