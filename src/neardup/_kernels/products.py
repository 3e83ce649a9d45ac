"""Products of three whole numbers, compared without rounding."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_WORD = ir.IntType(64)
_WIDE = ir.IntType(128)


@intrinsic
def first_is_greater(typing, a, b, c, d, e, f):
    """Return whether a b c > d e f, for int64 from 0 to 2**62 each; in 192 bits."""

    def emit(context, builder, signature, args):
        half = ir.Constant(_WIDE, 64)

        def product(x, y, z):
            x, y, z = (builder.zext(number, _WIDE) for number in (x, y, z))
            square = builder.mul(x, y)
            low = builder.mul(builder.zext(builder.trunc(square, _WORD), _WIDE), z)
            high = builder.mul(builder.lshr(square, half), z)
            return builder.add(high, builder.lshr(low, half)), builder.trunc(low, _WORD)

        high, low = product(*args[:3])
        other_high, other_low = product(*args[3:])
        return builder.select(
            builder.icmp_unsigned("==", high, other_high),
            builder.icmp_unsigned(">", low, other_low),
            builder.icmp_unsigned(">", high, other_high),
        )

    word = types.int64
    return types.boolean(word, word, word, word, word, word), emit
