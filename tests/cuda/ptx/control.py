"""Where a thread goes on: branches, calls, ends."""
import syntax
from operands import Place, plain
from tokens import Wrong

# Functions that nvcc's code calls and no PTX defines: what they become, and bytes of result and parameters.
LIBRARY = {"vprintf": ("ptx::call_vprintf", [4], [8, 8]), "__assertfail": ("ptx::call_assertfail", [], [8, 8, 4, 8, 8])}


def bra(f, i, parts):
    if parts[1:] not in ([], ["uni"]):
        return None
    return "goto %s;" % f.label(i.operands[0].text)


def brx(f, i, parts):
    if parts[1:] not in (["idx"], ["idx", "uni"]):
        return None
    labels = f.targets[i.operands[1].text]
    cases = " ".join("case %d: goto %s;" % (n, f.label(name)) for n, name in enumerate(labels))
    return "switch (%s) { %s default: ptx::op_trap(%s); }" % (f.names.read(i.operands[0], 4), cases, f.where(i))


def spaces_of(f, operand):
    """The .param variables that a call takes or fills."""
    found = [f.names.find(p.text) for p in operand.parts]
    if not all(isinstance(p, Place) and p.space == ".param" for p in found):
        raise Wrong("arguments of a call are .param variables")
    return found


def call(f, i, parts):
    if parts[1:] not in ([], ["uni"]):
        return None
    lists = [spaces_of(f, o) for o in i.operands if isinstance(o, syntax.Vector)]
    name = [o for o in i.operands if isinstance(o, syntax.Name)]
    if len(name) != 1:
        raise Wrong("calls by address are not known")
    results = lists.pop(0) if isinstance(i.operands[0], syntax.Vector) else []
    params = lists.pop(0) if lists else []
    callee, n_results, n_params = f.module.callee(name[0].text)
    if [p.size for p in results] != n_results or [p.size for p in params] != n_params:
        raise Wrong("%s is called with other parameters than it has" % name[0].text)
    args = ["t", f.where(i)] + ["(unsigned char *)(%s)" % p.expression for p in results + params]
    return "%s(%s);" % (callee, ", ".join(args))


def end(f, i, parts):
    if parts == ["exit"] and f.what.kind != ".entry":
        raise Wrong("exit inside of a function that is called")
    return "return;" if parts[1:] in ([], ["uni"]) else None


def other(f, i, parts):
    if i.opcode == "trap":
        return "ptx::op_trap(%s);" % f.where(i)
    if i.opcode == "nanosleep.u32":
        return "emulation::touch(%s);" % f.where(i)
    if i.opcode == "activemask.b32":  # of threads that run together there is one
        return f.names.write(i.operands[0], "b32", "(1u << t.here->lane)")
    return None


OWN = {"bra": bra, "brx": brx, "call": call, "ret": end, "exit": end, "trap": other, "nanosleep": other, "activemask": other}


def emit(f, i, parts):
    return OWN[parts[0]](f, i, parts) if parts[0] in OWN else None
