"""Operands to expressions of C++."""
import re

import kinds
import syntax
from tokens import Wrong

SPECIAL = {  # bytes, expression
    "%laneid": (4, "t.here->lane"),
    "%warpid": (4, "ptx::warp_of(t)"),
    "%nwarpid": (4, "((ptx::threads_of_block() + 31) / 32)"),
    "%smid": (4, "(t.here->block.x)"),
    "%nsmid": (4, "(gridDim.x)"),
    "%lanemask_eq": (4, "(1u << t.here->lane)"),
    "%lanemask_lt": (4, "((1u << t.here->lane) - 1)"),
    "%lanemask_le": (4, "((2u << t.here->lane) - 1)"),
    "%lanemask_gt": (4, "(~((2u << t.here->lane) - 1))"),
    "%lanemask_ge": (4, "(~((1u << t.here->lane) - 1))"),
    "%clock": (4, "((uint32_t)ptx::timer())"),
    "%clock_hi": (4, "((uint32_t)(ptx::timer() >> 32))"),
    "%clock64": (8, "ptx::timer()"),
    "%globaltimer": (8, "ptx::timer()"),
    "%globaltimer_lo": (4, "((uint32_t)ptx::timer())"),
    "%globaltimer_hi": (4, "((uint32_t)(ptx::timer() >> 32))"),
    "%dynamic_smem_size": (4, "(t.room - t.fixed)"),
    "%total_smem_size": (4, "t.room"),
    "WARP_SZ": (4, "32u"),
}
for axis in "xyz":
    SPECIAL["%%tid.%s" % axis] = (4, "(t.here->thread.%s)" % axis)
    SPECIAL["%%ctaid.%s" % axis] = (4, "(t.here->block.%s)" % axis)
    SPECIAL["%%ntid.%s" % axis] = (4, "(blockDim.%s)" % axis)
    SPECIAL["%%nctaid.%s" % axis] = (4, "(gridDim.%s)" % axis)


def plain(name):
    """A name that C++ takes."""
    return re.sub(r"\W", "_", name.replace("$", "_S"))


class Register:
    def __init__(self, name, size):
        self.name, self.size = name, size


class Place:
    """A variable: where its address comes from, and how much is there."""

    def __init__(self, space, expression, size, align):
        self.space, self.expression, self.size, self.align = space, expression, size, align


class Names:
    """What names mean, scope by scope; all registers of the function, which C++ has at its top."""

    def __init__(self, module_names):
        self.scopes = [module_names, {}]
        self.registers = {}  # by their names in C++: bytes
        self.reads, self.writes = set(), set()  # of the instruction that is being translated

    def enter(self):
        self.scopes.append({})

    def leave(self):
        self.scopes.pop()

    def add(self, name, what):
        self.scopes[-1][name] = what

    def register(self, name, kind):
        own = "v%d_%s" % (len(self.scopes) - 2, plain(name))
        if len(self.scopes) > 2:
            own += "_%d" % len(self.registers)
        found = Register(own, kinds.size_of(kind))
        self.registers[own] = found.size
        self.add(name, found)

    def find(self, name):
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    # ---- reading ----

    def number(self, number, size):
        if number.kind == "f64" and size != 8 or number.kind == "f32" and size != 4:
            raise Wrong("a constant of %s where %d bytes belong" % (number.kind, size))
        if size == 0:
            return "true" if number.value else "false"
        width = 8 * size
        if not -(1 << (width - 1)) <= number.value < 1 << width:
            raise Wrong("%d does not fit into %d bits" % (number.value, width))
        return "(%s)0x%xull" % (kinds.holds(size), number.value & ((1 << width) - 1))

    def read(self, operand, size, wider=False):
        """Its bits, as many as the type has; wider: registers may have more, and only the lower ones count."""
        if isinstance(operand, syntax.Number):
            return self.number(operand, size)
        if not isinstance(operand, syntax.Name):
            raise Wrong("%r is no single value" % (operand,))
        found = self.find(operand.text)
        if isinstance(found, Register):
            if found.size != size and not (wider and found.size > size > 0):
                raise Wrong("%s has %d bytes where %d belong" % (operand.text, found.size, size))
            self.reads.add(found.name)
            if operand.negated:
                return "!" + found.name
            return found.name if found.size == size else "(%s)%s" % (kinds.holds(size), found.name)
        if operand.text in SPECIAL and SPECIAL[operand.text][0] == size:
            return SPECIAL[operand.text][1]
        raise Wrong("%s is not known, or has not %d bytes" % (operand.text, size))

    def address_of(self, operand, size):
        """mov of a variable's address, with what is added to it."""
        base, offset = (operand.base, operand.offset) if isinstance(operand, syntax.Address) else (operand, 0)
        found = self.find(base.text) if isinstance(base, syntax.Name) else None
        if not isinstance(found, Place) or (size == 4 and found.space != ".shared"):
            return None
        return "(%s)(%s + %d)" % (kinds.holds(size), found.expression, offset)

    # ---- writing ----

    def target(self, operand, size, wider=False):
        """The register, and how many bytes it has; "_": (None, size)."""
        if isinstance(operand, syntax.Name) and operand.text == "_":
            return None, size
        found = self.find(operand.text) if isinstance(operand, syntax.Name) else None
        if not isinstance(found, Register) or (found.size != size and not (wider and found.size > size)):
            raise Wrong("%s is no register of %d bytes" % (getattr(operand, "text", operand), size))
        self.writes.add(found.name)
        return found.name, found.size

    def write(self, operand, kind, expression, wider=False):
        """A statement that puts down the bits of a value of this type."""
        size = kinds.size_of(kind)
        name, room = self.target(operand, size, wider)
        if name is None:
            return "(void)(%s);" % expression
        if room != size and kinds.is_signed(kind):
            expression = "(%s)(int%d_t)(%s)" % (kinds.holds(room), 8 * size, expression)
        return "%s = %s;" % (name, expression)
