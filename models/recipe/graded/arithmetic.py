"""Numbers: sums in words and digits, sequences, ordered lists, tables with totals, walks through a town, small programs
with their output. All results are computed, so they are right."""

import contextlib
import io

from words import (CREATURES, DAYS, FOODS, GOODS, MONTHS, NUMBERS, PLACES, THINGS, a, capital, count, listed, people, plural)


def story_sum(rng, level):
    (p, q) = people(rng, 2)
    what = rng.choice(FOODS + [plural(t) for t in THINGS])
    have = rng.randrange(2, 10 * level)
    steps = [f"{p} has {have} {what}."]
    work = []
    for _ in range(level + rng.randrange(2)):
        n = rng.randrange(1, 9 * level)
        if rng.random() < 0.5 or have < 2:
            steps.append(rng.choice([f"{capital(p.he)} finds {n} more.", f"{q} gives {p.him} {n} more.", f"{capital(p.he)} buys {n} more."]))
            work.append(f"{have} + {n} = {have + n}")
            have += n
        else:
            n = min(n, have)
            steps.append(rng.choice([f"{capital(p.he)} loses {n}.", f"{capital(p.he)} gives {n} to {q}.", f"{n} of them are gone by night."]))
            work.append(f"{have} - {n} = {have - n}")
            have -= n
    return f"Question: {' '.join(steps)} How many {what} has {p} now?\nAnswer: {'; '.join(work)}. {p} has {have} {what}."


def written_sums(rng, level):
    lines = []
    for _ in range(4 + 2 * level):
        op = rng.choice("+-*" if level > 1 else "+-")
        x, y = rng.randrange(10 ** level), rng.randrange(10 ** level)
        if op == "*":
            x, y = rng.randrange(13), rng.randrange(13 if level < 3 else 100)
        if op == "-" and y > x:
            x, y = y, x
        lines.append(f"{x} {op} {y} = {eval(f'{x}{op}{y}')}")
    return "\n".join(lines)


def times_table(rng, level):
    n = rng.randrange(2, 13 + 4 * level)
    return f"The {n} times table:\n" + "\n".join(f"{i} x {n} = {i * n}" for i in range(1, 11))


def sequence(rng, level):
    lines = []
    for _ in range(2 + level):
        kind = rng.randrange(3 + (level > 1))
        x, d = rng.randrange(1, 20), rng.randrange(1, 4 + 3 * level)
        if kind == 0:
            terms = [x + d * i for i in range(8)]
        elif kind == 1:
            terms = [x + 7 * d - d * i for i in range(8)]
        elif kind == 2:
            terms = [x * 2 ** i for i in range(7)]
        else:
            terms = [x, d]
            while len(terms) < 8:
                terms.append(terms[-1] + terms[-2])
        lines.append(", ".join(map(str, terms)))
    return "\n".join(lines)


def shopping_list(rng, level):
    p = people(rng, 1)[0]
    items = {w: rng.randrange(1, 13) for w in rng.sample(FOODS + GOODS, 4 + 2 * level)}
    text = f"{p}'s list:\n" + "\n".join(f"- {n} {w}" for w, n in items.items())
    how = rng.randrange(3)
    if how == 0:
        text += f"\nIn the order of the alphabet: {listed(sorted(items))}."
    elif how == 1:
        gone = rng.sample(sorted(items), 2)
        left = [w for w in items if w not in gone]
        text += f"\n{p} forgot the {gone[0]} and the {gone[1]}, and brought home the {listed(left)}."
    else:
        most = max(items.values())
        text += f"\nOf what is there most? {listed([w for w in items if items[w] == most])} ({most})."
    return text


def table(rng, level):
    who = [str(p) for p in people(rng, 2 + level)]
    columns = rng.sample(FOODS, 1 + level) if rng.random() < 0.6 else DAYS[:1 + level]
    rows = {w: [rng.randrange(10 * level) for _ in columns] for w in who}
    if rng.random() < 0.5:
        line = lambda cells: "| " + " | ".join(map(str, cells)) + " |"
        out = [line(["name", *columns, "sum"]), line(["---"] * (len(columns) + 2))]
    else:
        line = lambda cells: ",".join(map(str, cells))
        out = [line(["name", *columns, "sum"])]
    for w, cells in rows.items():
        out.append(line([w, *cells, sum(cells)]))
    totals = [sum(c) for c in zip(*rows.values())]
    out.append(line(["all", *totals, sum(totals)]))
    best = max(rows, key=lambda w: sum(rows[w]))
    if [sum(c) for c in rows.values()].count(sum(rows[best])) == 1:
        out.append(f"{best} has the most, {sum(rows[best])}.")
    return "\n".join(out)


def directions(rng, level):
    """A walk through a square town, step by step with the position after each."""
    p = people(rng, 1)[0]
    names = rng.sample(sorted(PLACES), 9)
    x, y = rng.randrange(3), rng.randrange(3)
    out = ["The town: " + "; ".join(f"{', '.join(names[r * 3:r * 3 + 3])}" for r in range(3)) + ".",
           f"{p} starts at the {names[y * 3 + x]}."]
    for _ in range(2 + 3 * level):
        moves = [(w, dx, dy) for w, dx, dy in (("east", 1, 0), ("west", -1, 0), ("south", 0, 1), ("north", 0, -1))
                 if 0 <= x + dx < 3 and 0 <= y + dy < 3]
        w, dx, dy = rng.choice(moves)
        x, y = x + dx, y + dy
        out.append(f"{capital(p.he)} goes {w} and comes to the {names[y * 3 + x]}.")
    return " ".join(out)


def words_backwards(rng, level):
    lines = []
    for _ in range(3 + level):
        ws = rng.sample(THINGS + sorted(CREATURES), 2 + level)
        lines.append(rng.choice([f"{' '.join(ws)} backwards: {' '.join(reversed(ws))}", f"{' '.join(ws)} sorted: {' '.join(sorted(ws))}",
                                 f"the first of {' '.join(ws)} is {ws[0]}, the last is {ws[-1]}",
                                 f"{ws[0]} spelled: {'-'.join(ws[0])}", f"{ws[0]} has {len(ws[0])} letters"]))
    return "\n".join(lines)


def calendar(rng, level):
    p = people(rng, 1)[0]
    d = rng.randrange(7)
    out = [f"To-day is {DAYS[d]}."]
    for _ in range(1 + level):
        n = rng.randrange(1, 7)
        out.append(rng.choice([f"In {count(n, 'days', 'day')} it will be {DAYS[(d + n) % 7]}.",
                               f"{capital(count(n, 'days', 'day'))} ago it was {DAYS[(d - n) % 7]}."]))
    m = rng.randrange(12)
    out.append(f"{p} was born in {MONTHS[m]}; the month before is {MONTHS[m - 1]} and the month after is {MONTHS[(m + 1) % 12]}.")
    return " ".join(out)


PROGRAMS = [
    "def {f}({v}):\n    total = 0\n    for x in {v}:\n        total += x\n    return total\n",
    "def {f}({v}):\n    best = {v}[0]\n    for x in {v}:\n        if x > best:\n            best = x\n    return best\n",
    "def {f}({v}):\n    found = []\n    for x in {v}:\n        if x % {k} == 0:\n            found.append(x)\n    return found\n",
    "def {f}({v}):\n    return [x + {k} for x in {v}]\n",
    "def {f}({v}):\n    return [x * {k} for x in {v} if x > {k}]\n",
    "def {f}({v}):\n    n = 0\n    for x in {v}:\n        if x == {k}:\n            n += 1\n    return n\n",
    "def {f}({v}):\n    seen = []\n    for x in {v}:\n        if x not in seen:\n            seen.append(x)\n    return seen\n",
    "def {f}({v}):\n    return sorted({v})[-{j}:]\n",
    "def {f}({v}):\n    out = []\n    for x in {v}:\n        out.insert(0, x)\n    return out\n",
    "def {f}({v}):\n    if not {v}:\n        return 0\n    return {v}[0] + {f}({v}[1:])\n",
]
WORDS = [
    "def {f}({v}):\n    words = {v}.split()\n    return len(words)\n",
    "def {f}({v}):\n    return \" \".join(reversed({v}.split()))\n",
    "def {f}({v}):\n    return [w for w in {v}.split() if len(w) > {k}]\n",
    "def {f}({v}):\n    counts = {{}}\n    for w in {v}.split():\n        counts[w] = counts.get(w, 0) + 1\n    return counts\n",
    "def {f}({v}):\n    longest = \"\"\n    for w in {v}.split():\n        if len(w) > len(longest):\n            longest = w\n    return longest\n",
    "def {f}({v}):\n    return [w[0] for w in {v}.split()]\n",
]


def program(rng, level):
    """A function, calls of it, and what they print."""
    about_words = rng.random() < 0.4
    noun = rng.choice(["words", "names", "text", "line"]) if about_words else rng.choice(["numbers", "values", "list", "ages", "prices", "steps"])
    verb = rng.choice("count find get make add keep sum take pick all".split())
    v = {"list": "items"}.get(noun, noun)
    k, j = rng.randrange(2, 6), rng.randrange(1, 4)
    source = rng.choice(WORDS if about_words else PROGRAMS).format(f=f"{verb}_{noun}", v=v, k=k, j=j)
    scope, out = {}, source
    exec(source, scope)
    for _ in range(1 + level):
        if about_words:
            arg = " ".join(rng.choice(sorted(CREATURES) + THINGS) for _ in range(rng.randrange(2, 4 + level)))
        else:
            arg = [rng.randrange(1, 4 + 6 * level) for _ in range(rng.randrange(2, 4 + level))]
        shown = f'"{arg}"' if about_words else repr(arg)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            print(repr(scope[f"{verb}_{noun}"](arg)))
        out += f"\n>>> {verb}_{noun}({shown})\n{printed.getvalue().strip()}"
    return out


def recipe(rng, level):
    p = people(rng, 1)[0]
    main = rng.choice(FOODS)
    goods = rng.sample(GOODS[:20], 2 + level)
    spoons = {g: rng.randrange(1, 6) for g in goods}
    steps = [f"Take {count(rng.randrange(2, 13), main)}."]
    for g in goods:
        steps.append(rng.choice([f"Add {count(spoons[g], 'spoons', 'spoon')} of {g}.", f"Stir in the {g}, {count(spoons[g], 'spoons', 'spoon')} of it."]))
    steps.append(f"Bake for {count(rng.randrange(2, 13) * 5, 'minutes')}.")
    text = f"How {p} makes {main}:\n" + "\n".join(f"{i}. {s}" for i, s in enumerate(steps, 1))
    g = rng.choice(goods)
    return text + f"\nHow much {g}? {capital(count(spoons[g], 'spoons', 'spoon'))}."
