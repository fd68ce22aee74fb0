#!/usr/bin/env python3
"""The rows of forms/*.txt, an instruction and its definition each, as PTX with a kernel a row and as C++ with a function a row.

rows.py FILE.txt … --ptx FILE.ptx --expected FILE.h"""
import argparse
import sys

import arithmetic
import kinds
import moves
import tokens

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
# The arguments: where operands come from (a, b, c and p at 8 bytes each), where results go, how many.
KERNEL = """.visible .entry row_%(n)d(.param .align 8 .b8 args[24])
{
.reg .b%(d)d d; .reg .b%(a)d a; .reg .b%(b)d b; .reg .b%(c)d c; .reg .pred p, over; .reg .b64 from, to, step; .reg .b32 i, n, size, flag;
mov.u32 i, %%ctaid.x; mov.u32 size, %%ntid.x; mov.u32 n, %%tid.x; mad.lo.s32 i, i, size, n;
ld.param.u64 from, [args]; ld.param.u64 to, [args+8]; ld.param.u32 n, [args+16];
setp.ge.u32 over, i, n; @over ret;
mul.wide.u32 step, i, 32; add.s64 from, from, step; mul.wide.u32 step, i, 8; add.s64 to, to, step;
ld.global.b%(a)d a, [from]; ld.global.b%(b)d b, [from+8]; ld.global.b%(c)d c, [from+16]; ld.global.u32 flag, [from+24];
and.b32 flag, flag, 1; setp.ne.u32 p, flag, 0; mov.b%(d)d d, 0;
%(text)s
st.global.u64 [to], 0; st.global.b%(d)d [to], d;
ret;
}
"""
NUMBERS = {"f32": "float", "f64": "double", "f16": "double", "bf16": "double", "f16x2": "u32", "bf16x2": "u32"}


class Row:
    def __init__(self, line):
        self.text, types, result = [part.strip() for part in line.split(" | ", 2)]
        self.types = types.split()
        self.result, _, units = result.partition(" ~ ")
        self.units = int(units or 0)

    def bits(self, n):
        return 8 * kinds.size_of(self.types[n]) if n < len(self.types) else 32

    def kernel(self, n):
        return KERNEL % {"n": n, "d": self.bits(0), "a": self.bits(1), "b": self.bits(2), "c": self.bits(3), "text": self.text}

    def expected(self, n):
        lines = ["{%s, \"%s\", %d, %d, &ptx_rows_%d, [](const u64 *x, bool p) -> u64 {" % (
            '"%s"' % self.text, self.types[0], self.bits(0) // 8, self.units, n)]
        for k, (name, kind) in enumerate(zip("abc", self.types[1:])):
            lines.append("const %s %s = number_%s(x[%d]); (void)%s;" % (self.number(kind), name, kind, k, name))
        lines.append("(void)x; (void)p; return code_%s((%s)(%s)); }, {%s}}," % (
            self.types[0], self.number(self.types[0]), self.result, ", ".join('"%s"' % t for t in self.types[1:])))
        return " ".join(lines)

    @staticmethod
    def number(kind):
        return NUMBERS.get(kind, kind.replace("b", "u"))

    def opcodes(self):
        words = [t.text for t in tokens.tokens_of(self.text) if t.kind == "word"]
        return [w for w in words if "." in w and not w.startswith(".")]


def rows_of(names):
    found = []
    for name in names:
        with open(name, encoding="utf-8") as f:
            found += [Row(line) for line in f if line.strip() and not line.startswith("#")]
    return found


def untried(rows):
    """What the translator knows and no row has: forms of the table, and instructions with a form of their own."""
    seen, names = set(), set()
    for opcode in (o for r in rows for o in r.opcodes()):
        parts = opcode.split(".")
        found = arithmetic.form_of(parts)
        names |= {parts[0], opcode}
        if found:
            seen.add(id(found[1]))
    missing = ["%s of %s" % (key, " ".join(form.types)) for key, forms in arithmetic.FORMS.items() for form in forms
               if id(form) not in seen]
    own = list(arithmetic.OWN) + list(arithmetic.NO_TYPE) + list(arithmetic.TWO) + ["mov", "cvt", "addc", "subc"]
    return missing + [name for name in own if name not in names]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="+")
    parser.add_argument("--ptx")
    parser.add_argument("--expected")
    given = parser.parse_args()
    rows = rows_of(given.rows)
    missing = untried(rows)
    if missing:
        print("no row has " + ", ".join(missing), file=sys.stderr)
        return 1
    with open(given.ptx, "w", encoding="utf-8") as f:
        f.write(HEAD + "".join(r.kernel(n) for n, r in enumerate(rows)))
    with open(given.expected, "w", encoding="utf-8") as f:
        f.write("".join("extern const ptx::kernel ptx_rows_%d;\n" % n for n in range(len(rows))))
        f.write("static const struct form rows[] = {\n" + "\n".join(r.expected(n) for n, r in enumerate(rows)) + "\n};\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
