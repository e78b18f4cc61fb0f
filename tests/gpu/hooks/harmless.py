# SPDX-License-Identifier: MIT
"""Changes a byte of the ELF identification that no loader reads."""
import sys

with open(sys.argv[1], "r+b") as file:
    file.seek(12)
    file.write(b"\1")
