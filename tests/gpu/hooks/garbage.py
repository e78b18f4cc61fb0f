# SPDX-License-Identifier: MIT
"""Leaves bytes that are no cubin."""
import sys

with open(sys.argv[1], "wb") as file:
    file.write(b"HOOK" + bytes(range(256)) * 8)
