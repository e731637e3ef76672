"""Whether anybody still waits for what a loop computes.

Each long loop asks once per pass over the rows. The answer is a list of thread numbers in memory that
``margintree.worker_threads`` writes. Compiled code finds it by the name of a symbol: an address in the code
itself would keep it from being stored in numba's cache.
"""

import ctypes
import sys

import llvmlite.binding
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from margintree.compiled.compile import compiled
from margintree.worker_threads import ABANDONED_THREADS

THREADS = "margintree_abandoned_threads"
OWN_NUMBER = "margintree_own_thread_number"
N_PLACES = len(ABANDONED_THREADS)
# Elsewhere a loop runs to its end, and the process waits for it when it exits.
CAN_ASK = sys.platform != "win32"

if CAN_ASK:
    llvmlite.binding.add_symbol(THREADS, ctypes.addressof(ABANDONED_THREADS))
    own_number = ctypes.cast(ctypes.CDLL(None).pthread_self, ctypes.c_void_p).value
    llvmlite.binding.add_symbol(OWN_NUMBER, own_number)


@intrinsic
def _listed(typing_context, place):
    """Return the thread number at a place of the list, 0 where there is none."""

    def codegen(context, builder, signature, args):
        kind = ir.ArrayType(ir.IntType(64), N_PLACES)
        module = builder.module
        threads = module.globals.get(THREADS) or ir.GlobalVariable(module, kind, THREADS)
        threads.linkage = "external"
        address = builder.gep(threads, [ir.Constant(ir.IntType(64), 0), args[0]])
        # Another thread writes: the value must be read anew each time, and whole.
        return builder.load_atomic(address, "monotonic", 8)

    return types.uint64(types.int64), codegen


@intrinsic
def _own_number(typing_context):
    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(ir.IntType(64), [])
        module = builder.module
        function = module.globals.get(OWN_NUMBER) or ir.Function(module, kind, OWN_NUMBER)
        return builder.call(function, [])

    return types.uint64(), codegen


@compiled
def is_abandoned():
    """Tell whether the result of this thread's work is wanted by nobody any more."""
    if not CAN_ASK:
        return False
    # Places are taken from the front, so that one look suffices as long as nothing was abandoned.
    for place in range(N_PLACES):
        number = _listed(place)
        if number == 0:
            return False
        if number == _own_number():
            return True
    return False
