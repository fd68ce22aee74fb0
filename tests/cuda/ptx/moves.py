"""mov, cvt, cvta, isspacep: values from one register, type or state space to another."""
import kinds
import syntax
from arithmetic import FLAGS, flags_of
from tokens import Wrong

SPACES = ("global", "shared", "local", "const", "param")


# ---- mov ----


def packed(f, target, size, vector):
    """mov.b64 d, {a, b}: the first part is the lowest."""
    each = size // len(vector.parts)
    parts = ["(%s)%s << %d" % (kinds.holds(size), f.names.read(p, each), 8 * each * n) for n, p in enumerate(vector.parts)]
    return f.names.write(target, "b%d" % (8 * size), "(%s)(%s)" % (kinds.holds(size), " | ".join(parts)))


def unpacked(f, vector, size, source):
    each = size // len(vector.parts)
    kind, holds = "b%d" % (8 * each), kinds.holds(each)
    lines = [f.names.write(p, kind, "(%s)(whole%d_ >> %d)" % (holds, 8 * size, 8 * each * n)) for n, p in enumerate(vector.parts)]
    return "{ whole%d_ = %s; %s }" % (8 * size, f.names.read(source, size), " ".join(lines))


def mov(f, i, parts):
    if len(parts) != 2 or not kinds.is_type(parts[1]):
        return None
    kind, size, (target, source) = parts[1], kinds.size_of(parts[1]), i.operands
    for vector in (target, source):
        if isinstance(vector, syntax.Vector) and (kind not in ("b16", "b32", "b64") or size % len(vector.parts)):
            return None
    if isinstance(source, syntax.Vector):
        return packed(f, target, size, source)
    if isinstance(target, syntax.Vector):
        return unpacked(f, target, size, source)
    if isinstance(source, (syntax.Name, syntax.Address)):
        address = f.names.address_of(source, size)
        if address is not None:
            return f.names.write(target, kind, address)
    return f.names.write(target, kind, f.names.read(source, size))


# ---- cvt ----

ROUNDS = ("rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi")


def is_float(kind):
    return kind[0] == "f" or kind.startswith("bf")


def rounding_fits(rounding, result, source):
    """Says the conversion how it is rounded where it has to be, and only there?"""
    if is_float(result) and is_float(source):
        wide = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
        if result == source or wide[source] < wide[result]:
            return rounding == "" or (result == source and rounding.endswith("i"))
        return len(rounding) == 2
    if is_float(source):
        return len(rounding) == 3
    return len(rounding) == 2 if is_float(result) else rounding == ""


def cvt(f, i, parts):
    modifiers, types = parts[1:-2], parts[-2:]
    if not all(kinds.is_type(t) for t in types) or not all(m in FLAGS and m not in ("approx", "full", "NaN") for m in modifiers):
        return None
    (result, source), rounding = types, [m for m in modifiers if m in ROUNDS]
    if "b" in (result[0], source[0]) and not (result.startswith("bf") or source.startswith("bf")) or len(rounding) > 1:
        return None
    flags = flags_of(modifiers)
    if result in ("f16x2", "bf16x2"):
        if source != "f32" or rounding not in (["rn"], ["rz"]) or len(i.operands) != 3:
            return None
        high, low = (f.names.read(o, 4) for o in i.operands[1:])
        return f.names.write(i.operands[0], result, "ptx::op_cvt_pair<ptx::%s, %s>(%s, %s)" % (result, flags, high, low))
    if source.endswith("x2") or not rounding_fits("".join(rounding), result, source):
        return None
    if len(i.operands) != 2:
        raise Wrong("%d operands" % len(i.operands))
    value = f.names.read(i.operands[1], kinds.size_of(source), wider=True)
    return f.names.write(i.operands[0], result, "ptx::op_cvt<ptx::%s, ptx::%s, %s>(%s)" % (result, source, flags, value), wider=True)


# ---- state spaces ----


def cvta(f, i, parts):
    to = len(parts) > 1 and parts[1] == "to"
    parts = [p for p in parts if p != "to"]
    if len(parts) != 3 or parts[1] not in SPACES or parts[2] != "u64":
        return None
    source = f.names.address_of(i.operands[1], 8) or f.names.read(i.operands[1], 8)
    if parts[1] == "shared":
        source = "ptx::%s(t, %s)" % ("generic_to_shared" if to else "shared_to_generic", source)
    return f.names.write(i.operands[0], "b64", source)


def isspacep(f, i, parts):
    """What the translated program has itself (constants, parameters) is not asked for."""
    if parts[1:] not in (["shared"], ["global"], ["local"]):
        return None
    address = f.names.read(i.operands[1], 8)
    shared, local = "t.in_shared(%s, 1)" % address, "ptx::in_own_stack(%s)" % address
    expression = {"shared": shared, "local": local, "global": "(!%s && !%s)" % (shared, local)}[parts[1]]
    return f.names.write(i.operands[0], "pred", expression)


OWN = {"mov": mov, "cvt": cvt, "cvta": cvta, "isspacep": isspacep}


def emit(f, i, parts):
    return OWN[parts[0]](f, i, parts) if parts[0] in OWN else None
