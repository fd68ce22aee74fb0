"""Instructions that make a value of values: what forms they have, and the call of machine/ that each becomes."""
import kinds
import syntax
from tokens import Wrong

ROUNDED = "rn rz rm rp"
ALL = kinds.INTEGERS


class Form:
    """`signature`: of the result and the arguments; T is the instruction's type, W one of twice its width, B its bits in C++."""

    def __init__(self, signature, types, modifiers=""):
        self.result, args = signature.split("=")
        self.args = args.split(",")
        self.types = types.split()
        self.modifiers = modifiers.split()


FORMS = {
    "add": [Form("T=T,T", "u16 u32 u64 s16 s64"), Form("T=T,T", "s32", "sat"), Form("T=T,T", "f32 f64", ROUNDED + " ftz sat"),
            Form("T=T,T", kinds.HALVES, "rn ftz sat")],
    "sub": [Form("T=T,T", "u16 u32 u64 s16 s64"), Form("T=T,T", "s32", "sat"), Form("T=T,T", "f32 f64", ROUNDED + " ftz sat"),
            Form("T=T,T", kinds.HALVES, "rn ftz sat")],
    "mul": [Form("T=T,T", "f32 f64", ROUNDED + " ftz sat"), Form("T=T,T", kinds.HALVES, "rn ftz sat")],
    "mul.lo": [Form("T=T,T", ALL)],
    "mul.hi": [Form("T=T,T", ALL)],
    "mul.wide": [Form("W=T,T", "u16 u32 s16 s32")],
    "mad.lo": [Form("T=T,T,T", ALL)],
    "mad.hi": [Form("T=T,T,T", ALL, "sat")],
    "mad.wide": [Form("W=T,T,W", "u16 u32 s16 s32")],
    "mad": [Form("T=T,T,T", "f32 f64", ROUNDED + " ftz sat")],
    "mul24.lo": [Form("T=T,T", "u32 s32")],
    "mul24.hi": [Form("T=T,T", "u32 s32")],
    "mad24.lo": [Form("T=T,T,T", "u32 s32")],
    "fma": [Form("T=T,T,T", "f32 f64", ROUNDED + " ftz sat"), Form("T=T,T,T", kinds.HALVES, "rn ftz sat relu")],
    "sad": [Form("T=T,T,T", ALL)],
    "div": [Form("T=T,T", ALL), Form("T=T,T", "f32 f64", ROUNDED + " approx full ftz")],
    "rem": [Form("T=T,T", ALL)],
    "abs": [Form("T=T", "s16 s32 s64"), Form("T=T", "f32 f64 " + kinds.HALVES, "ftz")],
    "neg": [Form("T=T", "s16 s32 s64"), Form("T=T", "f32 f64 " + kinds.HALVES, "ftz")],
    "min": [Form("T=T,T", ALL), Form("T=T,T", "f32 f64 " + kinds.HALVES, "ftz NaN")],
    "max": [Form("T=T,T", ALL), Form("T=T,T", "f32 f64 " + kinds.HALVES, "ftz NaN")],
    "copysign": [Form("T=T,T", "f32 f64")],
    "rcp": [Form("T=T", "f32 f64", ROUNDED + " approx ftz")],
    "sqrt": [Form("T=T", "f32 f64", ROUNDED + " approx ftz")],
    "rsqrt.approx": [Form("T=T", "f32", "ftz")],
    "ex2.approx": [Form("T=T", "f32", "ftz")],
    "lg2.approx": [Form("T=T", "f32", "ftz")],
    "sin.approx": [Form("T=T", "f32", "ftz")],
    "cos.approx": [Form("T=T", "f32", "ftz")],
    "tanh.approx": [Form("T=T", "f32")],
    "and": [Form("T=T,T", "pred " + kinds.BITS)],
    "or": [Form("T=T,T", "pred " + kinds.BITS)],
    "xor": [Form("T=T,T", "pred " + kinds.BITS)],
    "not": [Form("T=T", "pred " + kinds.BITS)],
    "cnot": [Form("T=T", kinds.BITS)],
    "shl": [Form("T=T,u32", kinds.BITS)],
    "shr": [Form("T=T,u32", kinds.BITS + " " + ALL)],
    "popc": [Form("u32=T", "b32 b64")],
    "clz": [Form("u32=T", "b32 b64")],
    "brev": [Form("T=T", "b32 b64")],
    "bfe": [Form("T=T,u32,u32", "u32 u64 s32 s64")],
    "bfi": [Form("T=T,T,u32,u32", "b32 b64")],
    "selp": [Form("T=T,T,pred", kinds.BITS + " f32 f64 " + ALL)],
}
FLAGS = {"rn": "RN", "rz": "RZ", "rm": "RM", "rp": "RP", "rni": "RNI", "rzi": "RZI", "rmi": "RMI", "rpi": "RPI", "ftz": "FTZ",
         "sat": "SAT", "approx": "APPROX", "full": "FULL", "NaN": "NANS", "relu": "RELU"}
APPROXIMATE = ("rsqrt.approx", "ex2.approx", "lg2.approx", "sin.approx", "cos.approx", "tanh.approx")
NO_TYPE = {"prmt.b32": "op_prmt", "shf.l.wrap.b32": "op_shf_l<false>", "shf.l.clamp.b32": "op_shf_l<true>",
           "shf.r.wrap.b32": "op_shf_r<false>", "shf.r.clamp.b32": "op_shf_r<true>"}
TWO = {"bmsk.wrap.b32": "op_bmsk<false>", "bmsk.clamp.b32": "op_bmsk<true>"}
TESTS = {"finite": "FINITE", "infinite": "INFINITE_", "number": "NUMBER", "notanumber": "NOTANUMBER", "normal": "NORMAL",
         "subnormal": "SUBNORMAL"}
COMPARISONS = {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE", "lo": "LO", "ls": "LS", "hi": "HI",
               "hs": "HS", "equ": "EQU", "neu": "NEU", "ltu": "LTU", "leu": "LEU", "gtu": "GTU", "geu": "GEU", "num": "NUM",
               "nan": "NAN_"}


def flags_of(modifiers):
    return "|".join("ptx::" + FLAGS[m] for m in modifiers) or "0"


def form_of(parts):
    """(key, form, type, modifiers) of a table's instruction; None: it is not there."""
    for key in (".".join(parts[:2]), parts[0]):
        rest = parts[1 + key.count(".") :]
        for form in FORMS.get(key, []):
            if rest and rest[-1] in form.types and all(m in form.modifiers for m in rest[:-1]):
                return key, form, rest[-1], rest[:-1]
    return None


def of_table(f, i, parts):
    found = form_of(parts)
    if found is None:
        return None
    key, form, kind, modifiers = found
    kind_of = {"T": kind, "W": kinds.twice(kind) if kinds.INTEGERS.find(kind) >= 0 and not kind.endswith("64") else kind}
    if len(i.operands) != 1 + len(form.args):
        raise Wrong("%d operands" % len(i.operands))
    args = [f.names.read(o, kinds.size_of(kind_of.get(a, a))) for o, a in zip(i.operands[1:], form.args)]
    name = "op_" + key.replace(".approx", "").replace(".", "_")
    flags = modifiers + ["approx"] * (key in APPROXIMATE)
    template = "ptx::%s%s" % (kind, ", " + flags_of(flags) if flags else "")
    return f.names.write(i.operands[0], kind_of.get(form.result, form.result),
                         "ptx::%s<%s>(%s)" % (name, template, ", ".join(args)))


# ---- with a form of their own ----


def words(f, i, parts):
    """Of three words one."""
    call = NO_TYPE.get(i.opcode) or TWO.get(i.opcode)
    n = 3 if i.opcode in NO_TYPE else 2
    args = [f.names.read(o, 4) for o in i.operands[1 : 1 + n]]
    return f.names.write(i.operands[0], "b32", "ptx::%s(%s)" % (call, ", ".join(args)))


def lop3(f, i, parts):
    if parts != ["lop3", "b32"] or not isinstance(i.operands[4], syntax.Number):
        return None
    args = [f.names.read(o, 4) for o in i.operands[1:4]]
    return f.names.write(i.operands[0], "b32", "ptx::op_lop3<%du>(%s)" % (i.operands[4].value, ", ".join(args)))


def dp4a(f, i, parts):
    if len(parts) != 3 or not {parts[1], parts[2]} <= {"u32", "s32"}:
        return None
    args = [f.names.read(o, 4) for o in i.operands[1:]]
    types = ", ".join("ptx::%s8" % p[0] for p in parts[1:])
    return f.names.write(i.operands[0], "b32", "ptx::op_dp4a<%s>(%s)" % (types, ", ".join(args)))


def bfind(f, i, parts):
    shift = parts[1] == "shiftamt"
    kind = parts[-1]
    if len(parts) != 2 + shift or kind not in "u32 u64 s32 s64".split():
        return None
    call = "ptx::op_bfind<ptx::%s, %s>(%s)" % (kind, str(shift).lower(), f.names.read(i.operands[1], kinds.size_of(kind)))
    return f.names.write(i.operands[0], "u32", call)


def testp(f, i, parts):
    if len(parts) != 3 or parts[1] not in TESTS or parts[2] not in ("f32", "f64"):
        return None
    arg = f.names.read(i.operands[1], kinds.size_of(parts[2]))
    return f.names.write(i.operands[0], "pred", "ptx::op_testp<ptx::%s, ptx::%s>(%s)" % (parts[2], TESTS[parts[1]], arg))


def slct(f, i, parts):
    parts, ftz = [p for p in parts if p != "ftz"], "ftz" in parts
    if len(parts) != 3 or not kinds.is_type(parts[1]) or parts[2] not in ("s32", "f32"):
        return None
    args = [f.names.read(o, kinds.size_of(k)) for o, k in zip(i.operands[1:], (parts[1], parts[1], parts[2]))]
    return f.names.write(i.operands[0], parts[1],
                         "ptx::op_slct<ptx::%s, ptx::%s, %s>(%s)" % (*parts[1:], "ptx::FTZ" if ftz else "0", ", ".join(args)))


COMPARED = (kinds.BITS + " " + ALL + " f32 f64 " + kinds.HALVES).split()


def comparison(f, operands, parts, kind):
    """The predicate of set and setp: a compared with b, and with another predicate: parts are [compare, {and or xor}, {ftz}]."""
    if parts[0] not in COMPARISONS or kind not in COMPARED or kind.endswith("x2"):
        return None
    flags = "ptx::FTZ" if "ftz" in parts[1:] else "0"
    a, b = (f.names.read(o, kinds.size_of(kind)) for o in operands[:2])
    call = "ptx::op_setp<ptx::%s, ptx::%s, %s>(%s, %s)" % (kind, COMPARISONS[parts[0]], flags, a, b)
    return call, [p for p in parts[1:] if p != "ftz"], operands[2:]


def combined(f, call, how, rest):
    """call, joined with the predicate that is left; None: no such form."""
    if not how and not rest:
        return call
    if len(how) != 1 or how[0] not in ("and", "or", "xor") or len(rest) != 1:
        return None
    sign = {"and": "&", "or": "|", "xor": "!="}[how[0]]
    return "(bool)(%s %s %s)" % (call, sign, f.names.read(rest[0], 0))


def setp(f, i, parts):
    made = comparison(f, i.operands[1:], parts[1:-1], parts[-1])
    if made is None:
        return None
    call, how, rest = made
    both = isinstance(i.operands[0], syntax.Both)
    first, second = combined(f, call, how, rest), combined(f, "!" + call, how, rest)
    if first is None:
        return None
    if not both:
        return f.names.write(i.operands[0], "pred", first)
    return "{ first_ = %s, second_ = %s; %s %s }" % (
        first, second, f.names.write(i.operands[0].first, "pred", "first_"),
        f.names.write(i.operands[0].second, "pred", "second_"))


def set_(f, i, parts):
    kind, result = parts[-1], parts[-2]
    if result not in ("u32", "s32", "f32"):
        return None
    made = comparison(f, i.operands[1:], parts[1:-2], kind)
    expression = made and combined(f, *made)
    return expression and f.names.write(i.operands[0], result, "ptx::op_set<ptx::%s>(%s)" % (result, expression))


# ---- add.cc and what takes its carry ----


def carrying(f, i, parts):
    """add.cc, addc, addc.cc, sub.cc, subc, subc.cc."""
    kind = parts[-1]
    if parts[0] not in ("add", "addc", "sub", "subc") or kind not in "u32 s32 u64 s64 b32 b64".split():
        return None
    if parts[1:-1] not in ([], ["cc"]) or (parts[0] in ("add", "sub") and parts[1:-1] == []):
        return None
    a, b = (f.names.read(o, kinds.size_of(kind)) for o in i.operands[1:])
    call = "add_carrying" if parts[0].startswith("add") else "sub_borrowing"
    taken = "carry" if parts[0].endswith("c") else "false"
    left = "&carry" if "cc" in parts else "&lost_carry"
    f.carries = True
    return f.names.write(i.operands[0], kind, "ptx::%s<ptx::%s>(%s, %s, %s, %s)" % (call, "u" + kind[1:], a, b, taken, left))


OWN = {"lop3": lop3, "dp4a": dp4a, "bfind": bfind, "testp": testp, "slct": slct, "setp": setp, "set": set_}


def emit(f, i, parts):
    """A statement of C++; None: no such form is known."""
    if i.opcode in NO_TYPE or i.opcode in TWO:
        return words(f, i, parts)
    if parts[0] in OWN:
        return OWN[parts[0]](f, i, parts)
    return of_table(f, i, parts) or carrying(f, i, parts)
