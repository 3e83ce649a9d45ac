"""Machine words: loads, stores, bit counts and 64-byte blocks, which Numba does not offer.

Each function is one or two LLVM instructions without checks. An address is what ``array.ctypes.data`` gives; the caller
keeps the array alive and guarantees that the bytes exist.
"""

from __future__ import annotations

from llvmlite import ir
from numba import int64, types, uint64
from numba.extending import intrinsic

from neardup.kernels.compilation import inlined

_BYTE = ir.IntType(8)
_WORD = ir.IntType(64)
_WIDE = ir.IntType(128)
_BLOCK = ir.VectorType(_BYTE, 64)


def _broadcast(value):
    return ir.Constant(_BLOCK, [value] * 64)


def _load(builder, address, kind):
    """Emit a load of a value that need not be aligned."""
    value = builder.load(builder.inttoptr(address, kind.as_pointer()))
    value.align = 1
    return value


def _store(builder, value, address):
    """Emit a store of a value that need not be aligned."""
    builder.store(value, builder.inttoptr(address, value.type.as_pointer())).align = 1


def _loader(number):
    """Return an intrinsic ``load(address)`` that returns the number at an address, aligned or not."""

    @intrinsic
    def load(typing, address):
        def emit(context, builder, signature, args):
            return _load(builder, args[0], ir.IntType(number.bitwidth))

        return number(types.uint64), emit

    return load


def _storer(number):
    """Return an intrinsic ``store(address, value)`` that writes a number to an address, aligned or not."""

    @intrinsic
    def store(typing, address, value):
        def emit(context, builder, signature, args):
            _store(builder, args[1], args[0])
            return context.get_dummy_value()

        return types.void(types.uint64, number), emit

    return store


load_u8, load_u16, load_u32, load_u64 = map(_loader, (types.uint8, types.uint16, types.uint32, types.uint64))
store_u8, store_u16, store_u32, store_u64 = map(_storer, (types.uint8, types.uint16, types.uint32, types.uint64))


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
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), emit


@intrinsic
def prefetch(typing, address):
    """Load the cache line at an address ahead of its use; any address is allowed."""

    def emit(context, builder, signature, args):
        pointer, number = _BYTE.as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        builder.call(function, [builder.inttoptr(args[0], pointer), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(types.uint64), emit


@intrinsic
def nonspace_mask(typing, address):
    """Return bit i set where byte i of the 64 at an address is not a space."""

    def emit(context, builder, signature, args):
        return builder.bitcast(builder.icmp_unsigned("!=", _load(builder, args[0], _BLOCK), _broadcast(0x20)), _WORD)

    return types.uint64(types.uint64), emit


@intrinsic
def at_most_mask(typing, address, bound):
    """Return bit i set where byte i of the 64 at an address is at most a bound (a uint8)."""

    def emit(context, builder, signature, args):
        load = _load(builder, args[0], _BLOCK)
        first = builder.insert_element(ir.Constant(_BLOCK, ir.Undefined), args[1], ir.IntType(32)(0))
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
        bounds = builder.shuffle_vector(first, ir.Constant(_BLOCK, ir.Undefined), lanes)
        return builder.bitcast(builder.icmp_unsigned("<=", load, bounds), _WORD)

    return types.uint64(types.uint64, types.uint8), emit


@intrinsic
def non_ascii_mask(typing, address):
    """Return bit i set where byte i of the 64 at an address is not ASCII."""

    def emit(context, builder, signature, args):
        return builder.bitcast(builder.icmp_signed("<", _load(builder, args[0], _BLOCK), _broadcast(0)), _WORD)

    return types.uint64(types.uint64), emit


@intrinsic
def fold_ascii_block(typing, source, target):
    """Copy 64 ASCII bytes: lower-case letters, keep digits and ``_``, replace all else by spaces."""

    def emit(context, builder, signature, args):
        load = _load(builder, args[0], _BLOCK)

        def within(vector, low, count):
            return builder.icmp_unsigned("<", builder.sub(vector, _broadcast(low)), _broadcast(count))

        upper = builder.zext(within(load, ord("A"), 26), _BLOCK)
        lower = builder.add(load, builder.mul(upper, _broadcast(32)))
        word = builder.or_(within(lower, ord("a"), 26), within(lower, ord("0"), 10))
        word = builder.or_(word, builder.icmp_unsigned("==", lower, _broadcast(ord("_"))))
        folded = builder.select(word, lower, _broadcast(0x20))
        _store(builder, folded, args[1])
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64), emit


@intrinsic
def is_square_at_least(typing, a, b, c, d):
    """Return whether (a b)^2 >= c c d, in 128 bits: a b < 2^63, c < 2^31, d < 2^62."""

    def emit(context, builder, signature, args):
        a, b, c, d = (builder.zext(x, _WIDE) for x in args)
        ab = builder.mul(a, b)
        left = builder.mul(ab, ab)
        right = builder.mul(builder.mul(c, c), d)
        return builder.icmp_unsigned(">=", left, right)

    return types.boolean(types.uint64, types.uint64, types.uint64, types.uint64), emit


@inlined
def mix(x):
    """Scramble a uint64 by a bijection: two rounds of multiply and shift."""
    x ^= x >> 32
    x *= 0xD6E8FEB86659FD93
    x ^= x >> 32
    x *= 0xD6E8FEB86659FD93
    x ^= x >> 32
    return x


@inlined
def decode_character(data, i):
    """Return the code point of valid UTF-8 that begins at data[i], and its length in bytes."""
    b = int64(data[i])
    if b < 0x80:
        return b, 1
    if b < 0xE0:
        return (b & 0x1F) << 6 | (int64(data[i + 1]) & 0x3F), 2
    if b < 0xF0:
        return (b & 0x0F) << 12 | (int64(data[i + 1]) & 0x3F) << 6 | (int64(data[i + 2]) & 0x3F), 3
    high = (b & 0x07) << 18 | (int64(data[i + 1]) & 0x3F) << 12
    return high | (int64(data[i + 2]) & 0x3F) << 6 | (int64(data[i + 3]) & 0x3F), 4


#: A chunk of the window's memory has 2**23 bytes.
CHUNK_BITS = 23
_OFFSET_MASK = uint64((1 << CHUNK_BITS) - 1)


@inlined
def pointer_to(bases, address):
    """Return the machine address of an address of the window's memory.

    bases: uint64[a power of two], the machine address of each chunk (see ``window.WindowIndex``).
    """
    chunk = uint64(address) >> uint64(CHUNK_BITS)
    return bases[chunk & uint64(bases.shape[0] - 1)] + (uint64(address) & _OFFSET_MASK)


@intrinsic
def is_product_greater(typing, a, b, c, d, e, f):
    """Return whether a b c > d e f, for int64 from 0 to 2**62, computed in 192 bits."""

    def emit(context, builder, signature, args):
        half = ir.Constant(_WIDE, 64)

        def product(x, y, z):
            x, y, z = (builder.zext(number, _WIDE) for number in (x, y, z))
            square = builder.mul(x, y)
            low = builder.mul(builder.zext(builder.trunc(square, _WORD), _WIDE), z)
            high = builder.mul(builder.lshr(square, half), z)
            return builder.add(high, builder.lshr(low, half)), builder.trunc(low, _WORD)

        high, low = product(*args[:3])
        right_high, right_low = product(*args[3:])
        return builder.select(
            builder.icmp_unsigned("==", high, right_high),
            builder.icmp_unsigned(">", low, right_low),
            builder.icmp_unsigned(">", high, right_high),
        )

    word = types.int64
    return types.boolean(word, word, word, word, word, word), emit
