"""Bare pointers to arrays, for loops that pass many of them around.

A tuple of arrays costs a reference count up and down for every array each time it is taken apart, which
took longer than the lookups of a whole walk. Pointers cost nothing. The caller's arguments outlive the call, so the
outermost function may pass pointers to them; an array that a function creates itself must stay an array.

With numba's bounds checking on (``NUMBA_BOUNDSCHECK=1``) arrays stay arrays, because a pointer knows no bounds.
"""

from numba.core import config, types
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic


def _bare(kind):
    if isinstance(kind, types.BaseTuple):
        return types.Tuple([_bare(part) for part in kind])
    return types.CPointer(kind.dtype) if _is_flat(kind) else kind


def _is_flat(kind):
    return not config.BOUNDSCHECK and isinstance(kind, types.Array) and kind.ndim == 1 and kind.layout == "C"


@intrinsic
def pointers(typing_context, value):
    """Return the pointer of a flat array; for a tuple, a tuple of pointers. Anything else is returned unchanged."""
    bare = _bare(value)

    def codegen(context, builder, signature, args):
        return _data(context, builder, value, args[0])

    return bare(value), codegen


def _data(context, builder, kind, value):
    if isinstance(kind, types.BaseTuple):
        parts = [_data(context, builder, part, builder.extract_value(value, i)) for i, part in enumerate(kind)]
        return context.make_tuple(builder, _bare(kind), parts)
    if _is_flat(kind):
        return context.make_array(kind)(context, builder, value).data
    if context.enable_nrt:
        context.nrt.incref(builder, kind, value)
    return value


@intrinsic
def read_only(typing_context, array):
    """Return the array as one of a type that is not written to, so that one compilation serves both."""
    kind = array.copy(readonly=True)

    def codegen(context, builder, signature, args):
        return impl_ret_borrowed(context, builder, kind, args[0])

    return kind(array), codegen
