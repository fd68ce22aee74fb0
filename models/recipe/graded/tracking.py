"""Stories with a state: who has what, who is where, what was put where, over many sentences, with questions at the end. An
answer follows from the story alone, perhaps from a sentence long before."""

from words import (HIDING, MOODS, PLACES, THINGS, WEATHERS, TRADES, a, capital, listed, people, thing)

OPENINGS = ["Once upon a time there {were} {who}.", "There {were} once {who}.", "In a far country there lived {who}.",
            "Long ago, when the hills were young, there lived {who}.", "This is the story of {who}.",
            "Not far from here there lived {who}.", "Everybody in the valley knew {who}."]
TIMES = ["One morning", "One day", "That evening", "Before dinner", "At noon", "After a while", "A little later",
         "When the clock struck {hour}", "The next day", "Towards night", "Soon", "Then", "Presently", "By and by"]
HOURS = "three four five six seven eight nine ten eleven".split()


def moment(rng):
    return rng.choice(TIMES).format(hour=rng.choice(HOURS))


def at(place):
    return f"{PLACES[place]} the {place}"


def in_(spot):
    return f"{HIDING[spot]} the {spot}"


class Tale:
    """The state of a story and its sentences so far."""

    def __init__(self, rng, n_people, n_things, n_places):
        self.rng = rng
        self.people = people(rng, n_people)
        self.places = rng.sample(sorted(PLACES), n_places)
        self.where = {p: rng.choice(self.places) for p in self.people}
        self.things = []
        while len(self.things) < n_things:
            new = thing(rng)
            if new.split()[-1] not in {t.split()[-1] for t in self.things}:
                self.things.append(new)
        self.holder = {}  # a person, or (spot, place)
        self.told = []

    def say(self, *choices):
        self.told.append(capital(self.rng.choice(choices)))

    def begin(self):
        rng = self.rng
        who = listed([p.name for p in self.people])
        self.say(rng.choice(OPENINGS).format(were="were" if len(self.people) > 1 else "was", who=who))
        for p in self.people:
            self.say(f"{p} was {at(self.where[p])}.", f"{p} lived {at(self.where[p])}.",
                     f"{p} sat {at(self.where[p])} and was {rng.choice(MOODS)}.",
                     f"as for {p}, {p.he} was {at(self.where[p])}.")
        for t in self.things:
            p = rng.choice(self.people)
            self.holder[t] = p
            self.say(f"{p} had {a(t)}.", f"{p} had {a(t)}, and {p.he} was very proud of it.",
                     f"{p.his} grandmother had given {p} {a(t)}.", f"{a(t)} belonged to {p}.",
                     f"{p} found {a(t)} {at(self.where[p])}.")

    def held_by(self, p):
        return [t for t in self.things if self.holder[t] is p]

    def step(self):
        rng = self.rng
        p = rng.choice(self.people)
        mine = self.held_by(p)
        lying = [t for t in self.things if isinstance(self.holder[t], tuple) and self.holder[t][1] == self.where[p]]
        here = [q for q in self.people if q is not p and self.where[q] == self.where[p]]
        acts = ["go", "go", "weather"]
        acts += ["give"] * 3 if mine and here else []
        acts += ["hide"] * 2 if mine else []
        acts += ["take"] * 3 if lying else []
        acts += ["meet"] if here else []
        getattr(self, rng.choice(acts))(p, mine, lying, here)

    def go(self, p, *_):
        to = self.rng.choice([x for x in self.places if x != self.where[p]])
        was, self.where[p] = self.where[p], to
        when = moment(self.rng)
        self.say(f"{when} {p} went to the {to}.", f"{p} left the {was} and walked to the {to}.",
                 f"{when}, {p} set out for the {to}.", f"{p} was tired of the {was}, so {p.he} ran to the {to}.",
                 f"{when} {p} was seen {at(to)}.")

    def give(self, p, mine, _, here):
        t, q = self.rng.choice(mine), self.rng.choice(here)
        self.holder[t] = q
        self.say(f"{p} gave the {t} to {q}.", f"{p} handed {q} the {t}.", f'"Here, {q}, take the {t}," said {p}.',
                 f'{q} said, "May I have the {t}?" and {p} gave it to {q.him}.',
                 f"{q} liked the {t} so much that {p} made {q.him} a present of it.")

    def hide(self, p, mine, *_):
        t, spot = self.rng.choice(mine), self.rng.choice(sorted(HIDING))
        self.holder[t] = (spot, self.where[p])
        self.say(f"{p} put the {t} {in_(spot)}.", f"{p} hid the {t} {in_(spot)} {at(self.where[p])}.",
                 f"{p} laid the {t} {in_(spot)} and told nobody.", f"so {p} left the {t} {in_(spot)}.")

    def take(self, p, _, lying, *__):
        t = self.rng.choice(lying)
        spot = self.holder[t][0]
        self.holder[t] = p
        self.say(f"{p} looked {in_(spot)} and found the {t}.", f"{p} took the {t}, which lay {in_(spot)}.",
                 f'"What is this {in_(spot)}?" cried {p}. It was the {t}, and {p.he} took it.')

    def meet(self, p, _, __, here):
        q = self.rng.choice(here)
        mood = self.rng.choice(MOODS)
        self.say(f'"Good day, {q}," said {p}.', f"{p} told {q} that {p.he} was {mood}.",
                 f'"Are you {mood}?" asked {p}. "Not at all," said {q}.', f"{p} and {q} sat down and talked.")

    def weather(self, p, *_):
        weather = self.rng.choice(WEATHERS)
        self.say(f"{moment(self.rng)} {weather}.", f"{weather}, and {p} stayed where {p.he} was.")

    def question(self):
        """A question and its answer."""
        rng = self.rng
        kind = rng.random()
        t = rng.choice(self.things)
        owner = self.holder[t]
        if kind < 0.5 and not isinstance(owner, tuple):
            return rng.choice([(f"Who has the {t}?", f"{owner} has the {t}."),
                               (f"Where is the {t}?", f"{owner} has it, {at(self.where[owner])}.")])
        if kind < 0.6 and isinstance(owner, tuple):
            return f"Where is the {t}?", f"It is {in_(owner[0])} {at(owner[1])}."
        p = rng.choice(self.people)
        if kind < 0.8:
            return f"Where is {p}?", f"{p} is {at(self.where[p])}."
        mine = self.held_by(p)
        return f"What has {p} got?", f"{p} has {listed(['the ' + m for m in mine]) if mine else 'nothing at all'}."


ENDINGS = ["And that was that.", "So they all went home.", "And they lived happily to the end of their days.",
           "And if they have not gone away, they are there still.", "That is the end of the story."]


def tale(rng, level):
    """level 1: one thing, two people; level 3: four people, four things, two dozen sentences."""
    t = Tale(rng, 1 + level, level + rng.randrange(2), 1 + level)
    t.begin()
    for _ in range(rng.randrange(3, 6) * (level + 1)):
        t.step()
    text = paragraphs(rng, t.told)
    if rng.random() < 0.5:
        text += " " + rng.choice(ENDINGS)
    for _ in range(rng.randrange(1, 2 + level)):
        question, answer = t.question()
        text += f"\n{question} {answer}"
    return text


def paragraphs(rng, sentences):
    text = ""
    for i, s in enumerate(sentences):
        text += s + ("\n" if i + 1 < len(sentences) and rng.random() < 0.12 else " ")
    return text.strip()


def errand(rng, level):
    """A person carries something through several places, gains and loses things, comes home and lists them."""
    (p,) = people(rng, 1)
    trade = rng.choice(sorted(TRADES))
    tool, ware = TRADES[trade]
    first, load = thing(rng), rng.choice(THINGS)
    sentences = [f"{a(trade)} sent {p.name} to market with {a(first)}.",
                 f'"Bring me {a(tool)} for it," said the {trade}, "and do not stop on the way."']
    have, trail = first, []
    for place in rng.sample(sorted(PLACES), 2 + level):
        other = people(rng, 1)[0]
        new = thing(rng)
        how = rng.random()
        if how < 0.7:
            sentences.append(rng.choice([
                f"{at(place)} {p.he} met {other}, who had {a(new)}. They changed: {p} gave the {have} and got the {new}.",
                f'{at(place)} there was {other} with {a(new)}. "Give me your {have} for my {new}," said {other}, and {p} did.',
                f"{other} stood {at(place)} and held {a(new)}. {p} liked it better than the {have}, so they changed."]))
            trail.append((have, new, other, place))
            have = new
        else:
            sentences.append(f"{at(place)} {p.he} rested a while, and looked at the {have}, and went on.")
    sentences.append(f"So {p} came home with the {have}.")
    sentences.append(f'"Where is my {tool}?" asked the {trade}.')
    if trail:
        story = "; ".join(f"for the {x} I got the {y} from {o}" for x, y, o, _ in trail)
        sentences.append(f'"Well," said {p}, "{story}; and here is the {have}."')
    sentences.append(rng.choice([f'"Then keep the {have}," said the {trade}, "and I will keep my {ware}."',
                                 f"The {trade} laughed till the {load} fell off the shelf.",
                                 f'"That is what comes of stopping," said the {trade}.']))
    return paragraphs(rng, [capital(s) for s in sentences])


def switch(rng, level):
    """Two stories whose sentences alternate."""
    one, two = Tale(rng, 2, 1 + level // 2, 3), Tale(rng, 2, 1 + level // 2, 3)
    one.begin()
    two.begin()
    parts = []
    for turn in range(2 + level):
        t = (one, two)[turn % 2]
        other = (one, two)[(turn + 1) % 2]
        for _ in range(rng.randrange(2, 5)):
            t.step()
        parts.append(" ".join(t.told))
        t.told = []
        bridge = rng.choice(["Meanwhile, let us see what became of {0}.", "Now we must go back to {0}.",
                             "But what of {0} all this time?", "And {0}?"])
        if turn + 1 < 2 + level:
            parts[-1] += "\n" + bridge.format(listed([p.name for p in other.people]))
    text = "\n".join(parts)
    for t in (one, two):
        text += "\n" + " ".join(t.question())
    return text
