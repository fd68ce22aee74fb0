"""A function of PTX to one of C++: registers are its locals, labels its labels."""
import re

import arithmetic
import control
import kinds
import memory
import moves
import syntax
import warps
from liveness import Line, share
from operands import Names, Place, Register, plain
from tokens import Wrong

EMITTERS = (arithmetic.emit, moves.emit, memory.emit, warps.emit, control.emit)
POISON = {"bool": "true", "uint8_t": "0xcb", "uint16_t": "0xcbcb", "uint32_t": "0xcbcbcbcbu", "uint64_t": "0xcbcbcbcbcbcbcbcbull"}


def size_of_variable(v):
    """Bytes; 0: as many as there are."""
    return kinds.size_of(v.type) * (1 if v.count is None else v.count)


# What instructions need for themselves: once a function, since a compiler that does not optimise gives each its own place.
TEMPORARIES = """unsigned char *p_; uint16_t whole16_; uint32_t whole32_, got_, a_[4], b_[2], c_[4], d_[4]; uint64_t whole64_;
bool there_, first_, second_;"""


class FunctionText:
    def __init__(self, module, what):
        self.module, self.what = module, what
        self.names = Names(module.names_for(what))
        self.targets, self.lines, self.buffers = {}, [], []
        self.carries, self.jumps = False, []

    # ---- what instructions ask for ----

    def where(self, i):
        return self.module.where(i)

    def label(self, name):
        """Where an instruction may go on."""
        self.jumps.append("L" + plain(name))
        return self.jumps[-1]

    def size_of(self, name):
        found = self.names.find(name.text)
        if not isinstance(found, Register):
            raise Wrong("%s is no register" % name.text)
        return found.size

    # ---- the body ----

    def instruction(self, i):
        parts = i.opcode.split(".")
        self.module.count(i.opcode)
        self.jumps = []
        self.names.reads, self.names.writes = set(), set()
        try:
            for emit in EMITTERS:
                text = emit(self, i, parts)
                if text is not None:
                    break
            else:
                raise Wrong("is not known")
        except (Wrong, KeyError, AttributeError, IndexError, ValueError, TypeError) as wrong:
            raise Wrong("%s, line %d: %s: %s" % (self.what.name, i.row, i.opcode, wrong)) from wrong
        always, goes_on = True, i.opcode.split(".")[0] not in ("ret", "exit", "trap", "bra", "brx")
        if i.guard is not None:
            text, always, goes_on = "if (%s) { %s }" % (self.names.read(i.guard, 0), text), False, True
        self.lines.append(Line(text, self.names.reads, self.names.writes, None, self.jumps, goes_on, always))

    def variable(self, v):
        """A buffer of a call, or local memory; of shared memory the module knows where it lies."""
        if v.space == ".shared" and self.what.kind == ".entry":
            return
        if v.space not in (".param", ".local"):
            raise Wrong("%s: %s variables inside of functions are not known" % (self.what.name, v.space))
        own, size, align = "%s_%d" % (plain(v.name), len(self.buffers)), size_of_variable(v), v.align or kinds.size_of(v.type)
        self.buffers.append("alignas(16) unsigned char %s[%d];" % (own, size))
        if v.space == ".local":
            self.lines.append(Line("memset(%s, emulation::POISON, sizeof %s);" % (own, own)))
        self.names.add(v.name, Place(v.space, "(uint64_t)" + own, size, align))

    def statement(self, s):
        if isinstance(s, syntax.Instruction):
            self.instruction(s)
        elif isinstance(s, syntax.Label):
            self.lines.append(Line("L%s:;" % plain(s.name), label="L" + plain(s.name)))
        elif isinstance(s, syntax.Registers):
            for name in s.names:
                self.names.register(name, s.type)
        elif isinstance(s, syntax.Scope):
            self.names.enter()
            self.body(s.body)
            self.names.leave()
        elif isinstance(s, syntax.Variable):
            self.variable(s)
        elif not isinstance(s, syntax.Targets):
            raise Wrong("%s: %r is not known" % (self.what.name, s))

    def body(self, statements):
        for s in statements:
            if isinstance(s, syntax.Targets):
                self.targets[s.name] = s.labels
        for s in statements:
            self.statement(s)

    # ---- the whole ----

    def place_params(self):
        """Parameters of kernels lie in one piece, those of others each by itself. Returns bytes of the former."""
        at = 0
        for v in self.what.params:
            size, align = size_of_variable(v), v.align or kinds.size_of(v.type)
            if self.what.kind == ".entry":
                at = (at + align - 1) // align * align
                self.names.add(v.name, Place(".param", "(uint64_t)(t.params + %d)" % at, size, align))
                at += size
            else:
                self.names.add(v.name, Place(".param", "(uint64_t)" + plain(v.name), size, align))
        for v in self.what.results:
            self.names.add(v.name, Place(".param", "(uint64_t)" + plain(v.name), size_of_variable(v), v.align or kinds.size_of(v.type)))
        return at

    def with_variables(self):
        """The lines, with variables of C++ for registers; nobody wrote to one yet: it is poison."""
        variables, counts, unwritten = share(self.lines, lambda register: self.names.registers[register])
        found = [TEMPORARIES] + self.buffers
        for size, n in sorted(counts.items()):
            found.append("%s %s;" % (kinds.holds(size), ", ".join("r%d_%d" % (8 * size, k + 1) for k in range(n))))
        for register in unwritten:
            found.append("%s = %s;" % (variables[register], POISON[kinds.holds(self.names.registers[register])]))
        if self.carries:
            found.append("bool carry = true, lost_carry = true; (void)carry; (void)lost_carry;")
        lines = [re.sub(r"\bv\d+_\w+", lambda m: variables[m.group()], line.text) for line in self.lines]
        return found + lines

    def translated(self):
        """(text, bytes of a kernel's parameters)"""
        params = self.place_params()
        self.body(self.what.body)
        return "\n".join(["{"] + self.with_variables() + ["}"]), params
