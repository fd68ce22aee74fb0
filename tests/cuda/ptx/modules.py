"""A module of PTX to a file of C++, and a second one that puts its kernels in the place of the host's."""
import collections
import re
import subprocess

import functions
import kinds
import syntax
from control import LIBRARY
from functions import FunctionText, size_of_variable
from operands import Place, plain
from tokens import Wrong


MANY_LINES = 1000  # which compilers that optimise take long for
LARGE = '__attribute__((optimize("O0")))\n'


def words_of(statements):
    """All names in a function's body."""
    for s in statements:
        if isinstance(s, syntax.Scope):
            yield from words_of(s.body)
        elif isinstance(s, syntax.Instruction):
            stack = list(s.operands)
            while stack:
                o = stack.pop()
                if isinstance(o, syntax.Name):
                    yield o.text
                elif isinstance(o, syntax.Address) and o.base:
                    yield o.base.text
                elif isinstance(o, syntax.Vector):
                    stack += o.parts


def variables_of(statements):
    """Those declared in a function's body."""
    for s in statements:
        if isinstance(s, syntax.Scope):
            yield from variables_of(s.body)
        elif isinstance(s, syntax.Variable):
            yield s


class ModuleText:
    def __init__(self, module, unit):
        self.module, self.unit = module, unit
        self.variables = {v.name: v for v in module.variables}
        self.functions = {f.name: f for f in module.functions if f.body is not None or f.name not in LIBRARY}
        self.places, self.files, self.opcodes = {}, {}, collections.Counter()
        self.entries = [f for f in module.functions if f.kind == ".entry" and f.body is not None]

    # ---- what functions ask for ----

    def count(self, opcode):
        self.opcodes[opcode] += 1

    def where(self, i):
        """The instruction's place in the table of all that can complain."""
        if i.row not in self.places:
            self.places[i.row] = (len(self.places), (self.module.files.get(i.site[0], ""), i.site[1]))
        return "at_line[%d]" % self.places[i.row][0]

    def callee(self, name):
        """(name in C++, bytes of results, of parameters)"""
        if name in self.functions:
            f = self.functions[name]
            return "f_" + plain(name), [size_of_variable(v) for v in f.results], [size_of_variable(v) for v in f.params]
        if name in LIBRARY:
            return LIBRARY[name]
        raise Wrong("%s is nobody's" % name)

    def reached(self, f, seen):
        """Names that a function and those that it calls mention."""
        found = set(words_of(f.body or []))
        for name in list(found):
            if name in self.functions and name not in seen:
                found |= self.reached(self.functions[name], seen | {name})
        return found

    def shared_of(self, f):
        """Where a kernel's shared variables lie: name → offset, and their bytes together."""
        names, at, where = self.reached(f, {f.name}), 0, {}
        for v in self.module.variables + list(variables_of(f.body)):
            if v.space == ".shared" and v.name in names and not v.extern:
                at = (at + v.align - 1) // v.align * v.align
                where[v.name] = at
                at += size_of_variable(v)
        return where, (at + 15) // 16 * 16

    def names_for(self, f):
        names = {}
        where = self.shared_of(f)[0] if f.kind == ".entry" else {}
        for v in self.module.variables + list(variables_of(f.body or [])):
            if v.space == ".shared" and v.extern:
                names[v.name] = Place(".shared", "(uint64_t)(ptx::SHARED_BASE + t.fixed)", 0, v.align)
            elif v.space == ".shared":
                if v.name in where:
                    names[v.name] = Place(".shared", "(uint64_t)(ptx::SHARED_BASE + %d)" % where[v.name], size_of_variable(v), v.align)
            elif v.space in (".global", ".const") and not v.extern:
                names[v.name] = Place(v.space, "(uint64_t)g_" + plain(v.name), size_of_variable(v), v.align)
        return names

    # ---- variables ----

    def initial(self, v):
        """Its bytes, and behind what names are known, the assignments of addresses."""
        size, each, lines = size_of_variable(v), kinds.size_of(v.type), []
        data = bytearray(size)
        for n, value in enumerate(v.values):
            if isinstance(value, tuple):
                if each != 8 or value[0] not in self.variables:
                    raise Wrong("%s: the address of %s in %s" % (v.name, value[0], v.type))
                lines.append("static const bool g_%s_%d = ((uint64_t *)g_%s)[%d] = (uint64_t)g_%s + %d;" % (
                    plain(v.name), n, plain(v.name), n, plain(value[0]), value[1]))
            else:
                data[n * each : (n + 1) * each] = (value & ((1 << 8 * each) - 1)).to_bytes(each, "little")
        text = " = {%s}" % ", ".join(map(str, data)) if any(data) else " = {0}"
        return "alignas(%d) static unsigned char g_%s[%d]%s;" % (max(16, v.align), plain(v.name), size, text), lines

    def variables_text(self):
        first, later = [], []
        for v in self.module.variables:
            if v.space in (".global", ".const") and not v.extern:
                declared, lines = self.initial(v)
                first.append(declared)
                later += lines + ["static const ptx::variable known_%s(g_%s, sizeof g_%s);" % ((plain(v.name),) * 3)]
        return first + later

    # ---- the whole ----

    def signature(self, f):
        buffers = ["unsigned char *" + plain(v.name) for v in f.results + f.params]
        return "static void f_%s(const ptx::thread &t, const ptx::where &%s)" % (
            plain(f.name), ", ".join([""] + buffers))

    def kernel_name(self, n):
        return "ptx_%s_%d" % (self.unit, n)

    def entry(self, n, f):
        made = FunctionText(self, f)
        text, params = made.translated()
        name = self.kernel_name(n)
        room = self.shared_of(f)[1]
        head = LARGE * (len(made.lines) > MANY_LINES) + "static void run_%d(const unsigned char *params_, uint32_t room_)\n{\nconst ptx::thread t(%s, params_, room_); (void)t;" % (n, name)
        kernel = 'extern const ptx::kernel %s;\nstatic void run_%d(const unsigned char *, uint32_t);\nconst ptx::kernel %s = {"%s", run_%d, %d, %d, %d};' % (
            name, n, name, f.name, n, params, room, f.threads)
        return "%s\n%s\n%s\n}" % (kernel, head, text)

    def table(self):
        names = sorted({site[0] for _, site in self.places.values()})
        lines = ["static const char *const sources[] = {%s};" % ", ".join('"%s"' % n for n in names or [""])]
        lines.append("static const ptx::where at_line[] = {")
        for row, (_, site) in sorted(self.places.items(), key=lambda p: p[1][0]):
            lines.append("{{sources[%d], %d}, %d}," % (names.index(site[0]), site[1], row))
        return lines + ["{{sources[0], 0}, 0}};"]

    def text(self):
        called = [f for f in self.functions.values() if f.kind == ".func" and f.body is not None]
        for f in self.functions.values():
            if f.body is None and f.name in self.reached_anywhere():
                raise Wrong("%s is nobody's" % f.name)
        bodies = [self.signature(f) + "\n" + FunctionText(self, f).translated()[0] for f in called]
        bodies += [self.entry(n, f) for n, f in enumerate(self.entries)]
        return "\n".join(['/* Made of %s by tests/cuda/ptx. */' % self.unit, '#include "tests/cuda/ptx/machine/machine.h"'] + self.table() +
                         self.variables_text() + [self.signature(f) + ";" for f in called] + bodies) + "\n"

    def reached_anywhere(self):
        return set().union(*[set(words_of(f.body)) for f in self.functions.values() if f.body is not None])

    def host_text(self, source):
        """The source itself, whose kernels are only addresses, and what stands for them."""
        plain_names = subprocess.run(["c++filt"], input="\n".join(f.name for f in self.entries), text=True,
                                     stdout=subprocess.PIPE, check=True).stdout.split("\n")
        lines = ['#include "%s"' % source, '#include "tests/cuda/ptx/machine/registry.h"']
        for n, (f, name) in enumerate(zip(self.entries, plain_names)):
            match = re.match(r"(?:void )?(.*)\(([^()]*)\)$", name.replace("(anonymous namespace)::", ""))
            if match is None:
                raise Wrong("%s is no kernel's name" % name)
            lines.append("extern const ptx::kernel %s;" % self.kernel_name(n))
            lines.append("static const ptx::registered registered_%d((const void *)(void (*)(%s))%s, %s);" % (
                n, match.group(2), match.group(1), self.kernel_name(n)))
        return "\n".join(lines) + "\n"
