"""ld, st, atom, red, fence, membar, prefetch."""
import kinds
import syntax
from tokens import Wrong

SPACES = ("global", "shared", "local", "const", "param")
SCOPES = ("cta", "cluster", "gpu", "sys")
CACHES = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "L1::no_allocate", "L1::evict_normal", "L1::evict_first",
          "L1::evict_last", "L1::evict_unchanged", "L2::64B", "L2::128B", "L2::256B", "unified")
VECTORS = {"v2": 2, "v4": 4, "v8": 8}
ATOMICS = ("add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas")


class Access:
    """What the opcode of a load or store says."""

    def __init__(self, parts):
        self.kind, self.space, self.n, self.order, self.nc = parts[-1], "", 1, "weak", False
        self.known = kinds.is_type(self.kind) and self.kind != "pred"
        for p in parts[1:-1]:
            if p.split("::")[0] in SPACES:  # ld.param::func, st.shared::cta
                self.space = p.split("::")[0]
                self.known = self.known and p.partition("::")[2] in ("", "cta", "func", "entry")
            elif p in VECTORS:
                self.n = VECTORS[p]
            elif p in ("weak", "volatile", "relaxed", "acquire", "release", "mmio"):
                self.order = p
            elif p in CACHES or p in SCOPES:
                self.nc = self.nc or p == "nc"
            else:
                self.known = False
        self.size = kinds.size_of(self.kind) if self.known else 0


def pointer(f, i, address, access, size):
    """The host's pointer to what an operand [base + offset] is in a space."""
    base, offset = address.base, address.offset
    place = f.names.find(base.text) if base else None
    at = f.where(i)
    if hasattr(place, "space"):
        if place.space in (".param", ".local"):  # known here
            if offset < 0 or (place.size and offset + size > place.size):
                raise Wrong("%d bytes at %d of the %s that %s has" % (size, offset, place.size, base.text))
            if place.align % size or offset % size:
                raise Wrong("%d bytes at %s + %d, which is aligned to %d" % (size, base.text, offset, place.align))
            return "((unsigned char *)(%s) + %d)" % (place.expression, offset)
        expression, width = place.expression, 8
    elif base is None:
        expression, width = "0ull", 8
    else:
        width = 8 if access.space not in ("shared", "local", "param", "const") or f.size_of(base) == 8 else 4
        expression = f.names.read(base, width)
    call = {"global": "at_global", "": "at_generic", "shared": "at_shared"}.get(access.space, "at_own")
    return "ptx::%s(t, (uint64_t)%s + (uint64_t)(int64_t)%d, %d, %s)" % (call, expression, offset, size, at)


def parts_of(operand, n):
    if n == 1:
        return [operand]
    if not isinstance(operand, syntax.Vector) or len(operand.parts) != n:
        raise Wrong("a vector of %d is wanted" % n)
    return operand.parts


def ld(f, i, parts):
    a = Access(parts)
    if not a.known or a.order == "release" or len(i.operands) != 2 or (a.nc and a.space not in ("global", "")):
        return None
    size, at = a.size * a.n, f.where(i)
    lines = ["p_ = %s;" % pointer(f, i, i.operands[1], a, size)]
    if a.order in ("volatile", "relaxed", "mmio") or "cg" in parts or "cv" in parts:
        lines.append("ptx::before_volatile(%s);" % at)
    if a.order == "acquire":
        lines.append("ptx::before_acquire(p_, %d, %s);" % (size, at))
    if a.nc:
        lines.append("emulation::constant(p_, %d, %s);" % (size, at))
    for n, register in enumerate(parts_of(i.operands[0], a.n)):
        load = "ptx::load<%s>(p_ + %d)" % (kinds.holds(a.size), n * a.size)
        lines.append(f.names.write(register, a.kind, load, wider=True))
    return "{ %s }" % " ".join(lines)


def st(f, i, parts):
    a = Access(parts)
    if not a.known or a.order == "acquire" or a.nc or len(i.operands) != 2:
        return None
    size = a.size * a.n
    lines = ["p_ = %s;" % pointer(f, i, i.operands[0], a, size)]
    if a.order == "release":
        lines.append("ptx::before_release(p_, %d, %s);" % (size, f.where(i)))
    for n, value in enumerate(parts_of(i.operands[1], a.n)):
        lines.append("ptx::store<%s>(p_ + %d, %s);" % (kinds.holds(a.size), n * a.size, f.names.read(value, a.size, wider=True)))
    return "{ %s }" % " ".join(lines)


def atomic(f, i, parts):
    """atom and red: {.order}{.scope}{.space}.op{.noftz}.type"""
    kind, rest = parts[-1], [p for p in parts[1:-1] if p != "noftz"]
    ops = [p for p in rest if p in ATOMICS]
    orders = [p for p in rest if p in ("relaxed", "acquire", "release", "acq_rel")]
    spaces = [p.split("::")[0] for p in rest if p in ("global", "shared", "shared::cta")]
    known = len(ops) + len(orders) + len(spaces) + sum(p in SCOPES for p in rest)
    if not kinds.is_type(kind) or len(ops) != 1 or len(orders) > 1 or len(spaces) > 1 or known != len(rest):
        return None
    access = Access(["ld"] + spaces + [kind])
    size, returns = access.size, parts[0] == "atom"
    n_values = 2 if ops[0] == "cas" else 1
    address, values = (i.operands[1], i.operands[2:]) if returns else (i.operands[0], i.operands[1:])
    if len(values) != n_values or (ops[0] == "cas" and not returns):
        return None
    order = {"acquire": "emulation::ACQUIRES", "release": "emulation::RELEASES", "acq_rel": "emulation::ACQUIRES | emulation::RELEASES",
             "relaxed": "0"}[orders[0] if orders else "relaxed"]
    call = "ptx::op_%s<ptx::%s, ptx::%s, %s>(%s, %s, %s)" % (
        parts[0], kind, ops[0].upper(), order, pointer(f, i, address, access, size), f.where(i),
        ", ".join(f.names.read(v, size) for v in values))
    return f.names.write(i.operands[0], kind, call) if returns else call + ";"


def fence(f, i, parts):
    """Scopes and kinds are all the same here: no thread sees another's stores late."""
    known = ("sc", "acq_rel") + SCOPES if parts[0] == "fence" else ("gl",) + SCOPES
    if parts[1:] and all(p in known for p in parts[1:]):
        return "emulation::fence(%s);" % f.where(i)
    return None


def prefetch(f, i, parts):
    if parts[1:] not in (["global", "L2"], ["global", "L1"]):
        return None
    a = i.operands[0]
    return "ptx::op_prefetch(t, %s + %d, %s);" % (f.names.read(a.base, 8), a.offset, f.where(i))


def cp(f, i, parts):
    if i.opcode != "cp.async.bulk.prefetch.L2.global":
        return None
    a = i.operands[0]
    return "ptx::op_bulk_prefetch(t, %s + %d, %s, %s);" % (f.names.read(a.base, 8), a.offset, f.names.read(i.operands[1], 4), f.where(i))


OWN = {"ld": ld, "ldu": None, "st": st, "atom": atomic, "red": atomic, "fence": fence, "membar": fence, "prefetch": prefetch, "cp": cp}


def emit(f, i, parts):
    return OWN[parts[0]](f, i, parts) if OWN.get(parts[0]) else None
