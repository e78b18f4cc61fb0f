# SPDX-License-Identifier: MIT
#
# cmake -DINPUT=<file> -DOUTPUT=<file.c> -P embed.cmake
#
# Writes the exact bytes of the prelude, and a NUL that its size does not count, as a C file;
# src/core/prelude.h declares what it defines. Character constants, because a string literal of
# that length is beyond what C guarantees and bytes above 0x7f do not convert to a signed char.
file(READ "${INPUT}" hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR size "${digits} / 2")
file(SHA256 "${INPUT}" digest)
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
file(WRITE "${OUTPUT}"
    "/* Generated from deepjit/kernel.h by embed.cmake. */\n"
    "#include \"core/prelude.h\"\n\n"
    "const char dj__prelude_text[] = {\n${bytes}'\\0'};\n"
    "const size_t dj__prelude_size = ${size};\n"
    "const char dj__prelude_digest[] = \"${digest}\";\n")
