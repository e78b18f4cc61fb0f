#!/bin/sh
# SPDX-License-Identifier: MIT
# Prints the first python3 that can import the given modules. The python3 on PATH may be one that
# a version manager put there, while the distribution's packages belong to /usr/bin/python3.
for python in "${PYTHON:-}" python3 /usr/bin/python3; do
    [ -n "$python" ] || continue
    ok=1
    for module in "$@"; do
        "$python" -c "import $module" >/dev/null 2>&1 || ok=
    done
    if [ -n "$ok" ]; then
        command -v "$python"
        exit 0
    fi
done
exit 1
