#!/bin/bash
# globals.sh OBJECT...: no object may hold data that can be written: state belongs to a struct that
# somebody owns and passes. (Sanitizer and coverage builds add such data of their own: take others.)
set -eu
found=$(nm -A --format=sysv --defined-only "$@" | awk -F'|' '
    { section = $NF; gsub(/ /, "", section); name = $1; gsub(/ +$/, "", name) }
    section ~ /^\.(data|bss|tdata|tbss)($|\.)/ && section !~ /^\.data\.rel\.ro/ { print name " in " section }')
[ -n "$found" ] || exit 0
echo "data that can be written:"
echo "$found"
exit 1
