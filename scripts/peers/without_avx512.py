"""Runs a program as on a processor without AVX-512, or without VNNI too.

usage: gdb -q -batch -x scripts/peers/without_avx512.py --args target/debug/examples/bench target/models/base
       with NO_VNNI=1 in the environment: without AVX-VNNI either

Rust's standard library asks the processor for its features once and keeps them in a variable of bits, in the order of
its list for x86 (std_detect/src/detect/arch/x86.rs, Rust 1.95). Here those bits are cleared before the program begins;
every crate that chooses its loops at run time reads them. Linux on x86-64 only.
"""

import os
import re

import gdb

AVX512 = [*range(19, 30), *range(33, 39)]
AVX_VNNI = [40]
BITS_PER_WORD = 63  # the highest says that the word is known


def symbol(kind, name):
    """The mangled name, which has the compiler's version in it."""
    listed = gdb.execute(f"info {kind} {name}$", to_string=True)
    return re.search(rf"_R\w*std_detect\w*{name}", listed)[0]


for setting in ("print demangle off", "print asm-demangle off", "pagination off", "debuginfod enabled off", "language c", "breakpoint pending on"):
    gdb.execute(f"set {setting}")
gdb.execute("break main")
gdb.execute("run", to_string=True)
gdb.execute(f"call ((int(*)(void))&{symbol('functions', 'detect_and_initialize')})()", to_string=True)
words = symbol("variables", "CACHE")
for bit in AVX512 + (AVX_VNNI if os.environ.get("NO_VNNI") else []):
    word, bit = divmod(bit, BITS_PER_WORD)
    gdb.execute(f"set var ((unsigned long*)&{words})[{word}] &= ~(1UL << {bit})")
gdb.execute("delete")  # main has two places
gdb.execute("continue")
