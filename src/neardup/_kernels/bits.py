"""Machine words: loads, counts and 64-byte blocks that Numba has no names for.

Every function here is an LLVM instruction or two; none checks anything. An address is what
``array.ctypes.data`` gives, and whoever calls keeps the array alive and has room for what is read.
"""

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

_BYTE = ir.IntType(8)
_WORD = ir.IntType(64)
_WIDE = ir.IntType(128)
_BLOCK = ir.VectorType(_BYTE, 64)


def _splat(value):
    return ir.Constant(_BLOCK, [value] * 64)


@intrinsic
def popcount(typing, x):
    """Return the number of set bits of a uint64."""

    def emit(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), emit


@intrinsic
def trailing_zeros(typing, x):
    """Return the position of the lowest set bit of a uint64 that is not 0."""

    def emit(context, builder, signature, args):
        return builder.cttz(args[0], cgutils.true_bit)

    return types.uint64(types.uint64), emit


@intrinsic
def load_u64(typing, address):
    """Return the eight bytes at an address, which need not be aligned, as a uint64."""

    def emit(context, builder, signature, args):
        load = builder.load(builder.inttoptr(args[0], _WORD.as_pointer()))
        load.align = 1
        return load

    return types.uint64(types.uint64), emit


@intrinsic
def prefetch(typing, address):
    """Ask for the cache line at an address, so that it is there when it is needed; any address is allowed."""

    def emit(context, builder, signature, args):
        pointer, number = _BYTE.as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        builder.call(function, [builder.inttoptr(args[0], pointer), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(types.uint64), emit


@intrinsic
def token_mask(typing, address):
    """Return bit i set where byte i of the 64 at an address is not a space."""

    def emit(context, builder, signature, args):
        load = builder.load(builder.inttoptr(args[0], _BLOCK.as_pointer()))
        load.align = 1
        return builder.bitcast(builder.icmp_unsigned("!=", load, _splat(0x20)), _WORD)

    return types.uint64(types.uint64), emit


@intrinsic
def at_most_mask(typing, address, bound):
    """Return bit i set where byte i of the 64 at an address is at most a bound (a uint8)."""

    def emit(context, builder, signature, args):
        load = builder.load(builder.inttoptr(args[0], _BLOCK.as_pointer()))
        load.align = 1
        first = builder.insert_element(ir.Constant(_BLOCK, ir.Undefined), args[1], ir.IntType(32)(0))
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
        bounds = builder.shuffle_vector(first, ir.Constant(_BLOCK, ir.Undefined), lanes)
        return builder.bitcast(builder.icmp_unsigned("<=", load, bounds), _WORD)

    return types.uint64(types.uint64, types.uint8), emit


@intrinsic
def high_mask(typing, address):
    """Return bit i set where byte i of the 64 at an address is not ASCII."""

    def emit(context, builder, signature, args):
        load = builder.load(builder.inttoptr(args[0], _BLOCK.as_pointer()))
        load.align = 1
        return builder.bitcast(builder.icmp_signed("<", load, _splat(0)), _WORD)

    return types.uint64(types.uint64), emit


@intrinsic
def fold_words(typing, source, target):
    r"""Copy 64 ASCII bytes: letters lower-cased, digits and ``_`` kept, all else a space."""

    def emit(context, builder, signature, args):
        load = builder.load(builder.inttoptr(args[0], _BLOCK.as_pointer()))
        load.align = 1

        def within(vector, low, count):
            return builder.icmp_unsigned("<", builder.sub(vector, _splat(low)), _splat(count))

        upper = builder.zext(within(load, ord("A"), 26), _BLOCK)
        lower = builder.add(load, builder.mul(upper, _splat(32)))
        word = builder.or_(within(lower, ord("a"), 26), within(lower, ord("0"), 10))
        word = builder.or_(word, builder.icmp_unsigned("==", lower, _splat(ord("_"))))
        folded = builder.select(word, lower, _splat(0x20))
        store = builder.store(folded, builder.inttoptr(args[1], _BLOCK.as_pointer()))
        store.align = 1
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64), emit


@intrinsic
def squares_reach(typing, a, b, c, d):
    """Return whether (a b)^2 >= c c d, in 128 bits: a b < 2^63, c < 2^31, d < 2^62."""

    def emit(context, builder, signature, args):
        a, b, c, d = (builder.zext(x, _WIDE) for x in args)
        ab = builder.mul(a, b)
        left = builder.mul(ab, ab)
        right = builder.mul(builder.mul(c, c), d)
        return builder.icmp_unsigned(">=", left, right)

    return types.boolean(types.uint64, types.uint64, types.uint64, types.uint64), emit


@njit(inline="always")
def mix(x):
    """Scramble a uint64, one to one (two rounds of multiply and shift)."""
    x ^= x >> 32
    x *= 0xD6E8FEB86659FD93
    x ^= x >> 32
    x *= 0xD6E8FEB86659FD93
    x ^= x >> 32
    return x
