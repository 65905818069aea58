"""Tuples of arrays, handed to kernels by address.

Numba looks at every array of every tuple in each call: 5 to 7 us for the forty arrays of a grid, and a push makes
several such calls. What changes rarely is therefore packed into a *frame*, one array of addresses and lengths, and
opened again inside the kernel, which takes no time that can be measured: a call costs 0.2 us.

A tuple says what its fields are by annotations: `I8`, `F8x2` and so on for arrays, `Annotated[Any, DTYPE, 1]` for
arrays of records, another such tuple, or `int`.

    class Pairs(NamedTuple):
        keys: I8
        table: F8x2
        mask: int

    open_pairs = opener(Pairs)

    @kernel
    def count(frame: Any) -> int:
        return count_pairs(open_pairs(frame))

Arrays have to be contiguous, and whoever packs a frame keeps them alive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype
from numpy.typing import NDArray

I1 = Annotated[Any, "i1", 1]
I4 = Annotated[Any, "i4", 1]
I8 = Annotated[Any, "i8", 1]
U1 = Annotated[Any, "u1", 1]
U4 = Annotated[Any, "u4", 1]
U8 = Annotated[Any, "u8", 1]
F4 = Annotated[Any, "f4", 1]
F8 = Annotated[Any, "f8", 1]
B1 = Annotated[Any, "b1", 1]
I4x2 = Annotated[Any, "i4", 2]
I8x2 = Annotated[Any, "i8", 2]
U8x2 = Annotated[Any, "u8", 2]
F4x2 = Annotated[Any, "f4", 2]
F4x3 = Annotated[Any, "f4", 3]
F8x2 = Annotated[Any, "f8", 2]
B1x2 = Annotated[Any, "b1", 2]


def pack(arrays: Any) -> NDArray[np.int64]:
    """A tuple of arrays as a kernel takes it. Whoever packs it keeps the arrays alive."""
    return np.array(_flat(arrays), np.int64)


def _flat(arrays: Any) -> list[int]:
    flat: list[int] = []
    for value in arrays:
        if isinstance(value, np.ndarray):
            assert value.flags.c_contiguous, "kernels read contiguous arrays"
            flat.append(value.__array_interface__["data"][0])
            flat.extend(value.shape)
        elif isinstance(value, tuple):
            flat.extend(_flat(value))
        else:
            flat.append(int(value))
    return flat


def opener(tuple_class: type) -> Callable[[Any], Any]:
    """What opens, inside a kernel, a frame of a tuple of this class."""
    kind = _kind_of(tuple_class)

    def open_frame(typingctx: Any, frame: Any) -> Any:  # noqa: ARG001 - intrinsics are given it
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            words = make_array(signature.args[0])(context, builder, arguments[0]).data
            return _Opening(context, builder, words).value(kind)

        return kind(frame), build

    open_frame.__name__ = open_frame.__qualname__ = f"open_{tuple_class.__name__}"
    return intrinsic(open_frame)  # type: ignore[no-any-return]


def _kind_of(annotation: Any) -> Any:
    """The compiler's type of a field, or of a tuple of fields."""
    if annotation is int:
        return types.int64
    if hasattr(annotation, "__metadata__"):
        dtype, dimensions = annotation.__metadata__
        return types.Array(from_dtype(np.dtype(dtype)), dimensions, "C")
    hints = get_type_hints(annotation, include_extras=True)
    return types.NamedTuple([_kind_of(hints[name]) for name in annotation._fields], annotation)


class _Opening:
    """Reads words one after the other, and makes of them what the types want."""

    def __init__(self, context: Any, builder: Any, words: Any) -> None:
        self._context, self._builder, self._words = context, builder, words
        self._next = 0

    def value(self, kind: Any) -> Any:
        if isinstance(kind, types.BaseTuple):
            return self._context.make_tuple(self._builder, kind, [self.value(field) for field in kind])
        return self._array(kind) if isinstance(kind, types.Array) else self._word()

    def _word(self) -> Any:
        word = self._builder.load(cgutils.gep_inbounds(self._builder, self._words, self._next))
        self._next += 1
        return word

    def _array(self, kind: Any) -> Any:
        context, builder = self._context, self._builder
        item = context.get_data_type(kind.dtype)
        data = builder.inttoptr(self._word(), item.as_pointer())
        shape = [self._word() for _ in range(kind.ndim)]
        stride = itemsize = context.get_constant(types.intp, context.get_abi_sizeof(item))
        strides: list[Any] = []
        for length in reversed(shape):
            strides.insert(0, stride)
            stride = builder.mul(stride, length)
        array = make_array(kind)(context, builder)
        packed = [cgutils.pack_array(builder, sizes) for sizes in (shape, strides)]
        populate_array(array, data=data, shape=packed[0], strides=packed[1], itemsize=itemsize, meminfo=None)
        return array._getvalue()
