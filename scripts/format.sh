#!/bin/sh
# SPDX-License-Identifier: MIT
# format.sh [-i | --check]: every C file as .clang-format says.
cd "$(dirname "$0")/.." || exit 1
case "${1:---check}" in
-i) set -- -i ;;
*) set -- --dry-run -Werror ;;
esac
find include src cli bench examples tests -name '*.[ch]' -print0 | xargs -0 clang-format "$@"
