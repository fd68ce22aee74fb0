"""What lanes and threads do together: shuffles, votes, reductions, barriers, matrices."""
import kinds
import syntax

REDUCTIONS = {"add": "+", "min": "<", "max": ">", "and": "&", "or": "|", "xor": "^"}


def shfl(f, i, parts):
    if len(parts) != 4 or parts[1] != "sync" or parts[2] not in ("up", "down", "bfly", "idx") or parts[3] != "b32":
        return None
    target = i.operands[0]
    both = isinstance(target, syntax.Both)
    args = ", ".join(f.names.read(o, 4) for o in i.operands[1:])
    lines = ["got_ = ptx::op_shfl<ptx::%s>(t, %s, &there_, %s);" % (parts[2].upper(), args, f.where(i))]
    lines.append(f.names.write(target.first if both else target, "b32", "got_"))
    if both:
        lines.append(f.names.write(target.second, "pred", "there_"))
    return "{ %s }" % " ".join(lines)


def vote(f, i, parts):
    if parts[1:] not in (["sync", "ballot", "b32"], ["sync", "any", "pred"], ["sync", "all", "pred"], ["sync", "uni", "pred"]):
        return None
    name = "op_ballot" if parts[2] == "ballot" else "op_vote_" + parts[2]
    call = "ptx::%s(%s, %s, %s)" % (name, f.names.read(i.operands[1], 0), f.names.read(i.operands[2], 4), f.where(i))
    return f.names.write(i.operands[0], parts[3], call)


def redux(f, i, parts):
    if len(parts) != 4 or parts[1] != "sync" or parts[2] not in REDUCTIONS or parts[3] not in ("u32", "s32", "b32"):
        return None
    call = "ptx::op_redux<ptx::%s, '%s'>(%s, %s, %s)" % (
        parts[3], REDUCTIONS[parts[2]], f.names.read(i.operands[1], 4), f.names.read(i.operands[2], 4), f.where(i))
    return f.names.write(i.operands[0], parts[3], call)


def match(f, i, parts):
    if parts[1:] not in (["any", "sync", "b32"], ["any", "sync", "b64"], ["all", "sync", "b32"], ["all", "sync", "b64"]):
        return None
    value, members = f.names.read(i.operands[1], kinds.size_of(parts[3])), f.names.read(i.operands[2], 4)
    if parts[1] == "any":
        return f.names.write(i.operands[0], "b32", "ptx::op_match_any(%s, %s, %s)" % (value, members, f.where(i)))
    target = i.operands[0]
    both = isinstance(target, syntax.Both)
    line = f.names.write(target.first if both else target, "b32", "ptx::op_match_all(%s, %s, &there_, %s)" % (value, members, f.where(i)))
    return "{ %s %s }" % (line, f.names.write(target.second, "pred", "there_") if both else "")


def elect(f, i, parts):
    if parts[1:] != ["sync"] or not isinstance(i.operands[0], syntax.Both):
        return None
    lane = f.names.write(i.operands[0].first, "b32", "ptx::op_elect(t, %s, &there_)" % f.names.read(i.operands[1], 4))
    return "{ %s %s }" % (lane, f.names.write(i.operands[0].second, "pred", "there_"))


def bar(f, i, parts):
    """Barrier 0, of all threads of the block."""
    rest = [p for p in parts[1:] if p not in ("cta", "aligned")]
    if rest == ["warp", "sync"]:
        return "ptx::op_warp_sync(%s, %s);" % (f.names.read(i.operands[0], 4), f.where(i))
    reduces = rest[:1] == ["red"]
    number = i.operands[1 if reduces else 0]
    if not isinstance(number, syntax.Number) or number.value != 0:
        return None
    if rest == ["sync"] and len(i.operands) == 1:
        return "emulation::block_barrier(0, %s);" % f.where(i)
    if not reduces or len(i.operands) != 3:
        return None
    p = f.names.read(i.operands[2], 0)
    sums = {"and": "emulation::block_barrier(!(%s), %s) == 0", "or": "emulation::block_barrier(%s, %s) != 0",
            "popc": "emulation::block_barrier(%s, %s)"}
    if rest[1:] not in (["and", "pred"], ["or", "pred"], ["popc", "u32"]):
        return None
    return f.names.write(i.operands[0], rest[2], sums[rest[1]] % (p, f.where(i)))


def mma(f, i, parts):
    types = {"f16": "unpack_halves, -13", "bf16": "unpack_bf16s, -125"}
    if parts[1:7] != ["sync", "aligned", "m16n8k16", "row", "col", "f32"] or len(parts) != 10 or parts[9] != "f32":
        return None
    if parts[7] != parts[8] or parts[7] not in types or [len(o.parts) for o in i.operands] != [4, 4, 2, 4]:
        return None
    lines = []
    for name, operand in zip("abc", i.operands[1:]):
        lines += ["%s_[%d] = %s;" % (name, n, f.names.read(o, 4)) for n, o in enumerate(operand.parts)]
    lines.append("ptx::op_mma<%s>(d_, a_, b_, c_, %s);" % (types[parts[7]], f.where(i)))
    lines += [f.names.write(o, "b32", "d_[%d]" % n) for n, o in enumerate(i.operands[0].parts)]
    return "{ %s }" % " ".join(lines)


def ldmatrix(f, i, parts):
    trans = "trans" in parts
    rest = [p for p in parts[1:] if p != "trans"]
    n = {"x1": 1, "x2": 2, "x4": 4}.get(rest[3] if len(rest) > 3 else "")
    if n is None or rest[:3] != ["sync", "aligned", "m8n8"] or rest[4:] not in (["shared", "b16"], ["shared::cta", "b16"]):
        return None
    a = i.operands[1]
    width = f.size_of(a.base)
    targets = i.operands[0].parts
    if len(targets) != n:
        return None
    lines = ["ptx::op_ldmatrix<%d, %s>(t, d_, (uint64_t)%s + %d, %s);" % (
        n, str(trans).lower(), f.names.read(a.base, width), a.offset, f.where(i))]
    lines += [f.names.write(o, "b32", "d_[%d]" % k) for k, o in enumerate(targets)]
    return "{ %s }" % " ".join(lines)


OWN = {"shfl": shfl, "vote": vote, "redux": redux, "match": match, "elect": elect, "bar": bar, "barrier": bar, "mma": mma,
       "ldmatrix": ldmatrix}


def emit(f, i, parts):
    return OWN[parts[0]](f, i, parts) if parts[0] in OWN else None
