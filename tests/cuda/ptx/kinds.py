"""The types of PTX."""

SIZES = {".pred": 0, ".f16": 2, ".bf16": 2, ".f16x2": 4, ".bf16x2": 4}
for letter in "bus":
    for width in (8, 16, 32, 64):
        SIZES[".%s%d" % (letter, width)] = width // 8
SIZES[".f32"], SIZES[".f64"] = 4, 8

INTEGERS = "u16 u32 u64 s16 s32 s64"
BITS = "b16 b32 b64"
HALVES = "f16 f16x2 bf16 bf16x2"


def is_type(word):
    return "." + word in SIZES


def size_of(kind):
    """Bytes of a type, ".f32" or "f32"; of a predicate 0."""
    return SIZES[kind if kind.startswith(".") else "." + kind]


def is_signed(kind):
    return kind.lstrip(".")[0] == "s"


def holds(size):
    """What C++ keeps a register of that size in."""
    return {0: "bool", 1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}[size]


def twice(kind):
    return "%s%d" % (kind[0], 2 * int(kind[1:]))
