#!/usr/bin/env python3
"""A random walk over the language: random templates of a grammar, rendered by build/tests/chat_render and by jinja2.

    python3 tests/jinja/walk.py build/tests/chat_render SEED COUNT

specscope must render the same text as jinja2 or refuse the template as not supported, and must refuse what jinja2 refuses. Ends with
"N compared, N not supported, N differ".
"""
import copy
import json
import random
import subprocess
import sys

import features
import jinja_as_transformers

NAMES = list(features.CONTEXT) + ["missing", "v", "w"]
FILTERS = ["upper", "lower", "trim", "length", "list", "string", "first", "last", "join(',')", "default('d')", "tojson", "sort", "unique | list",
           "int", "reverse | list", "items | list", "dictsort", "capitalize", "title", "min", "max",
           "indent(2)", "replace('a', 'b')", "map('upper') | list", "select | list", "map(attribute='name') | list",
           "selectattr('age') | list", "tojson(indent=2)", "join", "count", "d(1, true)",
           "map('string') | join('-')", "reject('none') | list", "tojson(ensure_ascii=true)", "trim('ab')", "map('int')"]
TESTS = ["defined", "undefined", "none", "string", "number", "mapping", "sequence", "iterable", "boolean", "true", "false", "odd", "even",
         "integer", "float", "in l", "eq 3", "gt 2", "ne 'a'"]
METHODS = ["upper()", "lower()", "strip()", "lstrip('a')", "rstrip()", "split()", "split('o')", "split(',', 1)", "startswith('a')", "endswith('d')",
           "replace('l', 'L')", "title()", "get('a')", "get('q', 1)", "join(['a'])",
           "format(1, 2)", "capitalize()"]
SIGNS = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", ">", "<=", ">=", "in", "not in", "and", "or"]
CONSTS = ["0", "1", "2", "-1", "3.5", "'a'", "'abc'", "''", "'%s|'", "'{}'", "true", "false", "none", "[]", "{}", "[1, 'a']", "{'a': 1}", "(1, 2)",
          "(range(3) | list)", "'é'", "namespace(a=1)", "dict(a=2)"]


class Walk:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def expression(self, depth):
        r = self.r
        if depth <= 0 or r.random() < 0.15:
            return r.choice(NAMES) if r.random() < 0.6 else r.choice(CONSTS)
        e = lambda: self.expression(depth - 1)
        kind = r.randrange(14)
        if kind < 3:
            return f"{self.postfix(depth)} | {r.choice(FILTERS)}"
        if kind < 5:
            return f"({e()}) {r.choice(SIGNS)} ({e()})"
        if kind == 5:
            return f"{self.postfix(depth)} is {r.choice(['', 'not '])}{r.choice(TESTS)}"
        if kind == 6:
            return f"{self.postfix(depth)}.{r.choice(METHODS)}"
        if kind == 7:
            return f"{self.postfix(depth)}[{e()}]"
        if kind == 8:
            return f"{self.postfix(depth)}[{r.choice(['', '1', '-1', '-2'])}:{r.choice(['', '2', '-1'])}{r.choice(['', ':', ':2', ':-1'])}]"
        if kind == 9:
            return f"{self.postfix(depth)}.{r.choice(['a', 'name', 'items', 'b', 'nope', 'age'])}"
        if kind == 10:
            return f"({e()} if {e()}" + (f" else {e()})" if r.random() < 0.7 else ")")
        if kind == 11:
            return r.choice(["not ", "-", ""]) + f"({e()})"
        if kind == 12:
            return r.choice([f"[{e()}, {e()}]", f"({e()},)", f"{{'k': {e()}}}", f"{{{e()}: 1}}"])
        return f"{e()} {r.choice(SIGNS)} {e()}"

    def postfix(self, depth):
        e = self.expression(depth - 1)
        return e if e.isidentifier() else f"({e})"

    def statements(self, depth):
        return "".join(self.statement(depth) for _ in range(self.r.randrange(1, 4)))

    def mark(self):
        return self.r.choice(["", "", "", "-", "-", "+"])

    def block(self, text):
        return "{%" + self.mark() + " " + text + " " + self.mark() + "%}"

    def statement(self, depth):
        r = self.r
        e = lambda: self.expression(2)
        kind = r.randrange(12) if depth > 0 else 0
        if kind < 3:
            return "{{" + r.choice(["", "-"]) + " " + self.expression(3) + " " + r.choice(["", "-"]) + "}}"
        if kind == 3:
            return r.choice(["\n", " ", "  \n  ", "text", " {# c #}\n", "\t"])
        if kind == 4:
            return self.block(f"if {e()}") + self.statements(depth - 1) + \
                (self.block("else") + self.statements(depth - 1) if r.random() < 0.5 else "") + self.block("endif")
        if kind == 5:
            body = self.statements(depth - 1) + r.choice(["", "{{ loop.index }}", "{{ loop.last }}", "{{ loop.length }}", "{{ loop.nextitem }}",
                                                          "{{ loop.previtem }}", "{{ loop.revindex }}", "{% if loop.first %}{% continue %}{% endif %}"])
            return self.block(f"for {r.choice(['v', 'w', 'v, w'])} in {e()}" + (f" if {e()}" if r.random() < 0.3 else "")) + body + \
                (self.block("else") + "E" if r.random() < 0.3 else "") + self.block("endfor")
        if kind in (6, 7):
            return self.block(f"set {r.choice(['v', 'w', 'n', 'v, w'])} = {e()}")
        if kind == 8:
            return self.block("set v" + r.choice(["", " | upper", " | trim | length"])) + self.statements(depth - 1) + self.block("endset")
        if kind == 9:
            return self.block("macro mac(v, w=2)") + self.statements(depth - 1) + self.block("endmacro") + "{{ mac(" + e() + ") }}"
        if kind == 10:
            return self.block("filter " + r.choice(["upper", "trim", "indent", "length"])) + self.statements(depth - 1) + self.block("endfilter")
        return self.block("generation") + self.statements(depth - 1) + self.block("endgeneration")


def main():
    program = subprocess.Popen(sys.argv[1], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    seed, count = int(sys.argv[2]), int(sys.argv[3])
    context = json.dumps(features.CONTEXT)
    unsupported = differ = rendered = 0
    for i in range(seed, seed + count):
        walk = Walk(i)
        template = walk.statements(3) if i % 2 else "{{ " + walk.expression(4) + " }}"
        expected, why = jinja_as_transformers.render(template, copy.deepcopy(features.CONTEXT))
        if expected is None and "unhashable" in why:
            continue  # jinja2 folds constants before anybody comes by
        if expected is not None and (" at 0x" in expected or len(expected) > 1000000):
            continue
        program.stdin.write(json.dumps({"template": template, "context": context}) + "\n")
        program.stdin.flush()
        got = json.loads(program.stdout.readline())
        rendered += expected is not None
        if got.get("text") == expected:
            continue
        if "not supported" in got.get("error", "") or "too large" in got.get("error", ""):
            unsupported += 1
            continue
        differ += 1
        print(f"seed {i}: {template!r}\n  jinja2    {expected!r} {why}\n  specscope {got}")
    print(f"{count} compared, {rendered} rendered, {unsupported} not supported, {differ} differ")
    return differ > 0 or rendered < count // 20


sys.exit(main())
