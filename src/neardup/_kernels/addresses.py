"""Memory in chunks: addresses that only grow, so that what is older than the window is told by a comparison.

An address counts bytes through all chunks that there ever were, oldest first; ``bases`` holds where the chunks lie
(a ring, by chunk number). A piece of memory never spans two allocations, but one allocation may be several chunks long.
"""

from llvmlite import ir
from numba import njit, types, uint64
from numba.extending import intrinsic

#: A chunk has 2**23 bytes.
CHUNK_BITS = 23
_WITHIN = uint64((1 << CHUNK_BITS) - 1)
_WORD = ir.IntType(64)
_HALF = ir.IntType(32)
_QUARTER = ir.IntType(16)
_BYTE = ir.IntType(8)


@intrinsic
def store_u64(typing, address, value):
    """Write a uint64 to an address."""

    def emit(context, builder, signature, args):
        builder.store(args[1], builder.inttoptr(args[0], _WORD.as_pointer())).align = 1
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64), emit


@intrinsic
def store_u32(typing, address, value):
    """Write a uint32 to an address."""

    def emit(context, builder, signature, args):
        builder.store(args[1], builder.inttoptr(args[0], _HALF.as_pointer())).align = 1
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint32), emit


@intrinsic
def load_u32(typing, address):
    """Return the four bytes at an address as a uint32."""

    def emit(context, builder, signature, args):
        load = builder.load(builder.inttoptr(args[0], _HALF.as_pointer()))
        load.align = 1
        return load

    return types.uint32(types.uint64), emit


@intrinsic
def store_u16(typing, address, value):
    """Write a uint16 to an address."""

    def emit(context, builder, signature, args):
        builder.store(args[1], builder.inttoptr(args[0], _QUARTER.as_pointer())).align = 1
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint16), emit


@intrinsic
def load_u16(typing, address):
    """Return the two bytes at an address as a uint16."""

    def emit(context, builder, signature, args):
        load = builder.load(builder.inttoptr(args[0], _QUARTER.as_pointer()))
        load.align = 1
        return load

    return types.uint16(types.uint64), emit


@intrinsic
def store_u8(typing, address, value):
    """Write a uint8 to an address."""

    def emit(context, builder, signature, args):
        builder.store(args[1], builder.inttoptr(args[0], _BYTE.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint8), emit


@intrinsic
def load_u8(typing, address):
    """Return the byte at an address as a uint8."""

    def emit(context, builder, signature, args):
        return builder.load(builder.inttoptr(args[0], _BYTE.as_pointer()))

    return types.uint8(types.uint64), emit


@njit(inline="always")
def place_of(bases, address):
    """Return where in the machine's memory an address of ours is."""
    chunk = uint64(address) >> uint64(CHUNK_BITS)
    return bases[chunk & uint64(bases.shape[0] - 1)] + (uint64(address) & _WITHIN)
