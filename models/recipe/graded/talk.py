"""Speech: conversations with questions and consistent answers, letters, arguments, an invented language, riddles."""

from words import (CREATURES, DAYS, FOODS, GOODS, MONTHS, MOODS, PLACES, QUALITIES, THINGS, TRADES, NUMBERS, WEATHERS, a, capital,
                   count, listed, people, plural, thing)

SAID = ["said", "said", "said", "asked", "answered", "cried", "replied"]


def dialogue(rng, level):
    """Two or three people talk about what each has, wants, saw; every answer follows from earlier sentences."""
    who = people(rng, 2 + (level > 2))
    facts = {p: dict(trade=rng.choice(sorted(TRADES)), likes=rng.choice(FOODS), place=rng.choice(sorted(PLACES)),
                     has=thing(rng), age=rng.randrange(7, 20)) for p in who}
    known, lines = [], []
    colon = rng.random() < 0.5  # 'Tom: …' or '"…," said Tom.'

    def say(p, text, verb="said"):
        if colon:
            lines.append(f"{p}: {text}")
        else:
            body, end = text[:-1], text[-1]
            lines.append(f'"{body}{"," if end == "." else end}" {verb} {p}.')

    for p in who:
        f = facts[p]
        key = rng.sample(["trade", "likes", "place", "has", "age"], min(5, 1 + level))
        said = dict(trade=f"I am {a(f['trade'])}.", likes=f"I like nothing so much as {f['likes']}.",
                    place=f"I come from the {f['place']}.", has=f"I have {a(f['has'])}.",
                    age=f"I am {count(f['age'], 'years', 'year')} old.")
        for k in key:
            say(p, said[k])
            known.append((p, k))
    ask = dict(trade="What are you?", likes="What do you like?", place="Where do you come from?", has="What have you got?",
               age="How old are you?")
    for p, k in rng.sample(known, min(len(known), 2 + level)):
        f = facts[p]
        other = rng.choice([q for q in who if q is not p])
        about = dict(trade=(f"What is {p}?", f"{p} is {a(f['trade'])}, and sells {TRADES[f['trade']][1]}."),
                     likes=(f"What does {p} like?", f"{p} likes {f['likes']}."),
                     place=(f"Where does {p} come from?", f"From the {f['place']}."),
                     has=(f"What has {p} got?", f"{capital(a(f['has']))}."),
                     age=(f"How old is {p}?", f"{capital(count(f['age'], 'years', 'year'))} old."))
        if rng.random() < 0.5 and len(who) > 2:
            third = rng.choice([q for q in who if q is not p and q is not other])
            say(other, about[k][0], "asked")
            say(third, about[k][1])
        else:
            say(other, ask[k], "asked")
            say(p, dict(trade=f"I told you, I am {a(f['trade'])}.", likes=f"I told you, I like {f['likes']}.",
                        place=f"I told you, from the {f['place']}.", has=f"I told you, I have {a(f['has'])}.",
                        age=f"I told you, I am {count(f['age'], 'years', 'year')} old.")[k])
    return "\n".join(lines)


def letter(rng, level):
    p, q = people(rng, 2)
    things = [thing(rng) for _ in range(level)]
    month, day = rng.choice(MONTHS), rng.randrange(1, 29)
    body = [f"I am {rng.choice(MOODS)} to-day, for {rng.choice(WEATHERS)} and I could not go to the {rng.choice(sorted(PLACES))}.",
            f"Thank you for the {things[0]}; it stands by my bed.",
            f"The {rng.choice(sorted(CREATURES))} has {count(rng.randrange(2, 9), 'young ones')}.",
            f"On {rng.choice(DAYS)} the {rng.choice(sorted(TRADES))} came and mended the {rng.choice(THINGS)}.",
            f"I send you {listed([a(t) for t in things[1:]]) if level > 1 else 'my love'}.",
            f"Do you still eat {rng.choice(FOODS)} every {rng.choice(DAYS)}?"]
    rng.shuffle(body)
    reply = f"\n\nDear {p},\nI have your letter of {month} {day}. I am glad that you like the {things[0]}." + (
        f" Thank you for {listed(['the ' + t for t in things[1:]])}." if level > 1 else "") + f"\nYour {q}"
    return f"{month} {day}\nDear {q},\n" + " ".join(body[:2 + level]) + f"\nYour {p}" + (reply if rng.random() < 0.7 else "")


def language(rng, level):
    """A few words of an invented language, then sentences in both languages; predicting them needs the list of words."""
    consonants, vowels = "bdfgklmnprstvz", "aeiou"

    def word():
        return "".join(rng.choice(consonants) + rng.choice(vowels) for _ in range(rng.randrange(1, 3))) + rng.choice(["", "n", "k", "s"])

    nouns, verbs = rng.sample(sorted(CREATURES), 2 + level), rng.sample(["sees", "likes", "hears", "chases", "feeds", "fears"], 2 + level // 2)
    book = {}
    for w in nouns + verbs:
        new = word()
        while new in book.values():
            new = word()
        book[w] = new
    people_ = rng.choice(["the people of the hill", "the mice", "the islanders", "the giants", "the moon-men"])
    lines = [f"In the tongue of {people_} " + ", ".join(f"{w} is {book[w]}" for w in book) + "."]
    for _ in range(3 + 2 * level):
        x, y = rng.sample(nouns, 2)
        v = rng.choice(verbs)
        lines.append(rng.choice([f"The {x} {v} the {y}: {book[x]} {book[v]} {book[y]}.",
                                 f"{capital(book[x])} {book[v]} {book[y]} means: the {x} {v} the {y}."]))
    return "\n".join(lines)


def riddle(rng, level):
    """Riddles about creatures and trades; level 3 distinguishes two creatures."""
    c = rng.choice([c for c in sorted(CREATURES) if CREATURES[c][0] != "nothing"])
    sound, home, food, young, legs = CREATURES[c]
    clues = [f"I say {sound}.", f"I live in the {home}.", f"I eat {food}.", f"My child is called {a(young)}.",
             f"I have {count(legs, 'legs', 'leg')}." if legs else "I have no legs."]
    trade = rng.choice(sorted(TRADES))
    tool, ware = TRADES[trade]
    out = []
    for _ in range(level):
        if rng.random() < 0.7:
            picked = rng.sample(clues, rng.randrange(2, 5))
            out.append(f"{' '.join(picked)} What am I? {capital(a(c))}.")
        else:
            out.append(f"I work with {a(tool)} and you buy {ware} from me. What am I? {capital(a(trade))}.")
        c = rng.choice([x for x in sorted(CREATURES) if CREATURES[x][0] != "nothing"])
        sound, home, food, young, legs = CREATURES[c]
        clues = [f"I say {sound}.", f"I live in the {home}.", f"I eat {food}.", f"My child is called {a(young)}.",
                 f"I have {count(legs, 'legs', 'leg')}." if legs else "I have no legs."]
        trade = rng.choice(sorted(TRADES))
        tool, ware = TRADES[trade]
    return "\n".join(out)


def quarrel(rng, level):
    """Who is taller, older, richer: comparisons of pairs, then the order of all."""
    who = people(rng, 2 + level)
    word, most, least = rng.choice([("taller", "tallest", "shortest"), ("older", "oldest", "youngest"),
                                    ("richer", "richest", "poorest"), ("stronger", "strongest", "weakest"),
                                    ("faster", "fastest", "slowest")])
    order = who[:]
    rng.shuffle(order)
    pairs = [(order[i], order[i + 1]) for i in range(len(order) - 1)]
    rng.shuffle(pairs)
    text = " ".join(f"{x} is {word} than {y}." for x, y in pairs)
    return text + rng.choice([
        f"\nWho is the {most}? {order[0]}. Who is the {least}? {order[-1]}.",
        f"\nSo the {most} is {order[0]} and the {least} is {order[-1]}.",
        f"\nIn order, the {most} first: {listed([p.name for p in order])}."])


def shop(rng, level):
    """At the counter: the goods, their prices, the total."""
    p, q = people(rng, 2)
    prices = {g: rng.randrange(2, 13) for g in rng.sample(GOODS, 3 + level)}
    lines = [f"{p} went into {q}'s shop. On the wall was written: " + ", ".join(
        f"{g} {count(c, 'pence')}" for g, c in prices.items()) + "."]
    total = 0
    for g in rng.sample(sorted(prices), 1 + level):
        n = rng.randrange(1, 4)
        total += n * prices[g]
        many = "a pound" if n == 1 else f"{NUMBERS[n]} pounds"
        lines.append(f'"{capital(many)} of {g}, please," said {p}. "That makes {count(n * prices[g], "pence")}," said {q}'
                     + (f', "and {total} in all."' if len(lines) > 1 else "."))
    paid = total + rng.randrange(0, 12)
    lines.append(f"{p} gave {q.him} {paid} pence" + (f" and got {paid - total} back." if paid > total else ", and not a penny was left."))
    return " ".join(lines)
