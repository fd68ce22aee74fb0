"""PTX text to a Module (syntax.py)."""
import os
import re

import syntax
from tokens import Stream, Wrong

SPACES = (".global", ".const", ".shared", ".local", ".param")
LINKAGE = (".visible", ".extern", ".weak", ".common")
# Of a function, between its parameters and its body: what it says to assemblers about registers and blocks.
TUNING = (".maxntid", ".reqntid", ".minnctapersm", ".maxnreg", ".noreturn")


class Parser:
    def __init__(self, text, root):
        self.s = Stream(text)
        self.root = root  # what names of source files begin with that they need not
        self.module = syntax.Module()
        self.site = (0, 0)

    # ---- modules ----

    def parse(self):
        while self.s.next.kind != "end":
            if self.s.next.kind == "line":
                self.line_directive()
            elif self.s.has(".section"):
                self.debug_section()
            else:
                self.top_level()
        return self.module

    def line_directive(self):
        text = self.s.take().text
        word, rest = text.split(None, 1)
        if word == ".version":
            self.module.version = rest.strip()
        elif word == ".target":
            self.module.target = rest.strip()
        elif word == ".file":
            number, name = re.match(r'\s*(\d+)\s+"([^"]*)"', rest).groups()
            name = os.path.normpath(name)
            inside = name.startswith(self.root + os.sep)
            self.module.files[int(number)] = os.path.relpath(name, self.root) if inside else name
        elif word == ".loc":
            number, line = rest.split()[:2]
            self.site = (int(number), int(line))
        elif rest.strip() != "64":
            raise Wrong("%s: only addresses of 64 bits are known" % text)

    def debug_section(self):
        """Names of inlined functions, for debuggers."""
        name = self.s.word()
        if not name.startswith(".debug"):
            raise Wrong("a section %s, which is not known" % name)
        self.s.must("{")
        while not self.s.has("}"):
            self.s.take()

    def top_level(self):
        linkage = []
        while self.s.next.text in LINKAGE:
            linkage.append(self.s.take().text)
        if self.s.next.text in SPACES:
            self.module.variables += self.variables(".extern" in linkage)
        elif self.s.next.text in (".entry", ".func"):
            self.module.functions.append(self.function())
        elif self.s.has(".pragma"):
            self.pragma()
        else:
            raise Wrong("line %d: %r is not known" % (self.s.next.row, self.s.next.text))

    def pragma(self):
        while not self.s.has(";"):
            text = self.s.take().text
            if text not in ('"nounroll"', ",") and not text.startswith('"used_bytes_mask'):
                raise Wrong("pragma %s is not known" % text)

    # ---- variables ----

    def variable(self, extern=False):
        """One, up to behind its dimensions."""
        v = syntax.Variable(self.s.take().text, 0, "", "", None, extern)
        while self.s.next.text.startswith("."):
            word = self.s.take().text
            if word == ".align":
                v.align = self.s.integer()
            elif word == ".ptr":  # what a pointer points to, for assemblers
                if self.s.next.text in SPACES:
                    self.s.take()
            elif word != ".attribute":
                v.type = word
        v.name = self.s.word()
        while self.s.has("["):
            size = 0 if self.s.next.text == "]" else self.s.integer()
            v.count = size * (1 if v.count is None else v.count)
            self.s.must("]")
        return v

    def variables(self, extern):
        v = self.variable(extern)
        if self.s.has("="):
            v.values = self.initial_values()
        self.s.must(";")
        return [v]

    def initial_values(self):
        if not self.s.has("{"):
            return [self.initial_value()]
        values = []
        while not self.s.has("}"):
            values += self.initial_values()
            self.s.has(",")
        return values

    def initial_value(self):
        if self.s.next.kind == "word":
            name = self.s.word()
            if name == "generic":
                self.s.must("(")
                name = self.s.word()
                self.s.must(")")
            return (name, self.s.integer() if self.s.has("+") else 0)
        return self.number().value

    # ---- functions ----

    def params(self):
        found = []
        if self.s.has("("):
            while not self.s.has(")"):
                found.append(self.variable())
                self.s.has(",")
        return found

    def function(self):
        kind = self.s.take().text
        results = self.params() if kind == ".func" else []
        f = syntax.Function(kind, self.s.word(), results, self.params(), None)
        while self.s.next.text in TUNING:
            word, threads = self.s.take().text, 1
            while self.s.next.kind == "number":
                threads *= self.s.integer()
                self.s.has(",")
            if word in (".maxntid", ".reqntid"):
                f.threads = threads
        if not self.s.has(";"):
            self.s.must("{")
            self.site = (0, 0)
            f.body = self.statements()
        return f

    def statements(self):
        """Up to behind the brace that closes them."""
        found = []
        while not self.s.has("}"):
            if self.s.next.kind == "end":
                raise Wrong("a function does not end")
            one = self.statement()
            if one is not None:
                found.append(one)
        return found

    def statement(self):
        s = self.s
        if s.next.kind == "line":
            return self.line_directive()
        if s.has("{"):
            return syntax.Scope(self.statements())
        if s.has(";"):
            return None
        if s.has(".pragma"):
            return self.pragma()
        if s.next.text == ".reg":
            return self.registers()
        if s.next.text in SPACES:
            return self.variables(False)[0]
        if s.next.kind == "word" and s.behind().text == ":":
            return self.label()
        return self.instruction()

    def registers(self):
        self.s.take()
        found = syntax.Registers(self.s.word(), [])
        while True:
            name = self.s.word()
            if self.s.has("<"):
                found.names += ["%s%d" % (name, i) for i in range(self.s.integer())]
                self.s.must(">")
            else:
                found.names.append(name)
            if self.s.has(";"):
                return found
            self.s.must(",")

    def label(self):
        name = self.s.word()
        self.s.must(":")
        if not self.s.has(".branchtargets"):
            return syntax.Label(name)
        labels = [self.s.word()]
        while self.s.has(","):
            labels.append(self.s.word())
        self.s.must(";")
        return syntax.Targets(name, labels)

    # ---- instructions ----

    def instruction(self):
        guard = None
        if self.s.has("@"):
            negated = self.s.has("!")
            guard = syntax.Name(self.s.word(), negated)
        row = self.s.next.row
        found = syntax.Instruction(self.s.word(), [], guard, row, self.site)
        while not self.s.has(";"):
            found.operands.append(self.operand())
            if self.s.next.text != ";":
                self.s.must(",")
        return found

    def operand(self):
        s = self.s
        if s.has("["):
            return self.address()
        for opening, closing in (("{", "}"), ("(", ")")):
            if s.has(opening):
                parts = []
                while not s.has(closing):
                    parts.append(self.operand())
                    s.has(",")
                return syntax.Vector(parts)
        if s.next.kind == "number" or s.next.text == "-":
            return self.number()
        negated = s.has("!")
        name = syntax.Name(s.word(), negated)
        if s.has("|"):
            return syntax.Both(name, syntax.Name(s.word()))
        if s.next.text in ("+", "-") and not negated:
            return syntax.Address(name, self.offset())
        return name

    def offset(self):
        """+n, -n, +-n, or nothing."""
        if self.s.has("+"):
            return self.s.integer()
        return self.s.integer() if self.s.next.text == "-" else 0

    def address(self):
        base = syntax.Name(self.s.word()) if self.s.next.kind == "word" else None
        found = syntax.Address(base, self.offset() if base else self.s.integer())
        self.s.must("]")
        return found

    def number(self):
        text = self.s.next.text
        if self.s.next.kind == "number" and text[:2] in ("0f", "0F", "0d", "0D"):
            self.s.take()
            return syntax.Number(int(text[2:], 16), "f32" if text[1] in "fF" else "f64")
        return syntax.Number(self.s.integer())


def parse(text, root):
    return Parser(text, root).parse()
