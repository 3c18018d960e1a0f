"""
Compile plain functions with Numba, and keep the machine code on disk.

A compiled function is filed under a fingerprint of everything it is made of: a changed formula never meets old code.
"""

from equipoise.compiled.addresses import address, call_address
from equipoise.compiled.cache import is_kept, kept
from equipoise.compiled.compiler import start_compiler
from equipoise.compiled.content import fingerprint
from equipoise.compiled.files import anything_kept, can_keep
from equipoise.compiled.jit import borrowing, callable_compiled, inlined, internal, jit
from equipoise.compiled.records import records, spaced_records

__all__ = [
    "address",
    "anything_kept",
    "borrowing",
    "call_address",
    "callable_compiled",
    "can_keep",
    "fingerprint",
    "inlined",
    "internal",
    "is_kept",
    "jit",
    "kept",
    "records",
    "spaced_records",
    "start_compiler",
]
