"""Text that repeats with small changes: cumulative tales, counting rhymes, refrains, verses. The repeated part is easy to
predict from memory; the new part is not."""

from words import (COLOURS, CREATURES, DAYS, FOODS, NUMBERS, PLACES, QUALITIES, RHYMES, THINGS, a, capital, count, listed,
                   people, plural, thing)

DEEDS = "chased bit kicked scared found woke followed carried fed bumped licked painted washed tickled lifted pulled".split()


def cumulative(rng, level):
    """This is the … that … the …"""
    owner = people(rng, 1)[0]
    links = [f"the {thing(rng)} that {owner} made"]
    who = rng.sample(sorted(CREATURES), 4 + 2 * level)
    lines = []
    for i, c in enumerate([None] + who):
        if c is not None:
            quality = rng.choice(QUALITIES) + " " if level > 1 else ""
            links.append(f"the {quality}{c} that {rng.choice(DEEDS)}")
        lines.append("This is " + " ".join(reversed(links)) + ".")
    return "\n".join(lines)


def asked_in_turn(rng, level):
    """One asks one after another for help; each refuses, until one does, and then all must."""
    p = people(rng, 1)[0]
    c = rng.sample(sorted(CREATURES), 3 + level)
    verbs = rng.sample(DEEDS, len(c))
    bare = {"bit": "bite", "found": "find", "woke": "wake", "fed": "feed", "scared": "scare", "chased": "chase",
            "carried": "carry"}
    now = [bare.get(v, v[:-2] if v.endswith("ed") else v) for v in verbs]
    lines = [f"{p} wanted to go home, but the {c[0]} would not go over the {rng.choice(['stile', 'bridge', 'brook'])}."]
    for i in range(1, len(c)):
        lines.append(f'{capital(p.he)} went a little further and met {a(c[i])}. "{capital(c[i])}, {c[i]}, {now[i]} the {c[i-1]}! '
                     + capital("; ".join([f"the {c[j]} will not {now[j]} the {c[j-1]}" for j in range(i - 1, 0, -1)]
                                         + [f"the {c[0]} will not go"])) + f', and I shall not get home tonight." But the {c[i]} would not.')
    food = rng.choice(FOODS)
    lines.append(f"So {p} gave the {c[-1]} some {food}. " + capital(", ".join(
        f"the {c[j]} began to {now[j]} the {c[j-1]}" for j in range(len(c) - 1, 0, -1)))
        + f", the {c[0]} went on, and so {p} got home that night.")
    return "\n".join(lines)


def countdown(rng, level):
    n = rng.randrange(4, 7 + 2 * level)
    what, where = rng.choice(sorted(CREATURES)), rng.choice(["wall", "log", "bough", "roof", "fence", "cart", "stone"])
    quality = rng.choice(MOOD)
    fate = [rng.choice(["fell", "flew", "ran", "hopped", "rolled", "crept"]) + " " + rng.choice(
        ["away", "off", "down", "home", "into the " + rng.choice(sorted(PLACES))]) for _ in range(n)]
    same = rng.random() < 0.5
    lines = []
    for i in range(n, 0, -1):
        they = count(i, plural(what), what)
        left = count(i - 1, plural(what), what) if i > 1 else f"no {plural(what)}"
        lines.append(f"{capital(they)}, {quality} as can be, sat on a {where};\none {fate[0] if same else fate[i - 1]}, and then there "
                     + (f"were {left}." if i != 2 else f"was {left}."))
    return "\n".join(lines)


MOOD = "merry sleepy hungry silly noisy tiny lazy clever proud wet cold fat".split()


def verses(rng, level):
    """Couplets that rhyme, and a refrain that comes back word for word."""
    p = people(rng, 1)[0]
    refrain = rng.choice([f"With a hey and a ho and a {rng.choice(THINGS)},\nand so says {p}.",
                          f"Sing {rng.choice(COLOURS)}, sing {rng.choice(COLOURS)},\nthe {rng.choice(sorted(CREATURES))} and you.",
                          f"Round goes the {rng.choice(THINGS)}, round, round, round,\nand never comes down to the ground.",
                          f"Oh, {p}, {p}, come over the hill,\nthe {rng.choice(sorted(CREATURES))} is waiting still."])
    parts = []
    for family in rng.sample(RHYMES, 2 + level):
        x, y = rng.sample(family, 2)
        q = people(rng, 1)[0]
        adj = rng.sample(QUALITIES, 2)
        parts.append(rng.choice([
            f"I saw {a(adj[0] + ' ' + x)}\nbeside {a(adj[1] + ' ' + y)}.",
            f"{q} went to look for {a(x)}\nand all {q.he} found was {a(y)}.",
            f"There was a {adj[0]} {x} that spoke to a {y}:\n\"You're {adj[1]},\" it said, \"but I don't know why.\"",
            f"Here is the {x} and there is the {y};\none is {adj[0]}, and the other is {adj[1]}.",
            f"If I had {a(x)} I would give it to you,\nand you would have {a(y)} and {a(x)} too."]))
        parts.append(refrain)
    return "\n".join(parts)


def week(rng, level):
    """On Monday …; then all of it backwards, or asked about."""
    p = people(rng, 1)[0]
    n = 3 + level if level < 3 else 7
    did = {}
    verbs = [("bought", "buy"), ("lost", "lose"), ("mended", "mend"), ("found", "find"), ("sold", "sell"),
             ("painted", "paint"), ("broke", "break"), ("borrowed", "borrow")]
    for d in DAYS[:n]:
        did[d] = (rng.choice(verbs), thing(rng))
    text = "\n".join(f"On {d} {p} {v[0]} {a(t)}." for d, (v, t) in did.items())
    if rng.random() < 0.5:
        text += "\nNow backwards:\n" + "\n".join(f"On {d} {p} {did[d][0][0]} {a(did[d][1])}." for d in reversed(did))
    for d in rng.sample(sorted(did), 2):
        v, t = did[d]
        text += "\n" + rng.choice([f"What did {p} {v[1]} on {d}? {capital(a(t))}.",
                                   f"When did {p} {v[1]} the {t}? On {d}."])
    return text


def animals(rng, level):
    """A farm whose creatures each have a sound; a refrain that grows."""
    p = people(rng, 1)[0]
    cs = [c for c in rng.sample(sorted(CREATURES), 10) if CREATURES[c][0] != "nothing"][:2 + level]
    seen, text = [], []
    for c in cs:
        seen.insert(0, c)
        where = CREATURES[c][1]
        text.append(f"{p} had {a(c)}, and the {c} lived in the {where}. "
                    + " ".join(f'"{capital(CREATURES[x][0])}," said the {x}.' for x in seen))
    return "\n".join(text)


def echo(rng, level):
    """A line that repeats with one word changed."""
    (p, q) = people(rng, 2)
    words = [rng.choice(QUALITIES), rng.choice(THINGS), rng.choice(sorted(PLACES)), rng.choice(sorted(CREATURES))]
    line = f"the {words[0]} {words[1]} by the {words[2]} belongs to the {words[3]}"
    out = [f'{p} said: "{capital(line)}."']
    pools = [QUALITIES, THINGS, sorted(PLACES), sorted(CREATURES)]
    for i in range(2 + level):
        k = rng.randrange(4)
        old, words[k] = words[k], rng.choice(pools[k])
        line = f"the {words[0]} {words[1]} by the {words[2]} belongs to the {words[3]}"
        who = (q, p)[i % 2]
        out.append(f'"Not {old}, {words[k]}," said {who}. "{capital(line)}."')
    return "\n".join(out)
