"""The lexicon of the graded text: people, creatures, things, places, and facts about them.

The lists were written for this project. The facts that a text uses (a cow's sound, a bee's home) are in the word's entry, so the
texts are consistent and can be learned."""

import random

GIRLS = """Ada Agnes Alice Alma Amelia Amy Anna Annie Aurora Beatrice Bella Bertha Bess Betsy Betty Bridget Cara Carol
Cecily Celia Charlotte Clara Cora Daisy Della Dinah Dora Dorothy Edith Effie Eliza Ella Ellen Elsie Emily Emma Esther
Ethel Eva Fanny Flora Florence Frances Freda Gerda Gertrude Grace Greta Hannah Harriet Hattie Hazel Heidi Helen Hester
Hilda Ida Ina Irene Iris Isabel Ivy Jane Jenny Jessie Jill Joan Josephine Julia June Karen Kate Kathleen Kitty Laura
Lavinia Lena Letty Lily Lina Lizzie Lola Lottie Lucy Lydia Mabel Maggie Maisie Margaret Maria Marigold Martha Mary
Matilda Maud May Mercy Mildred Milly Minnie Mira Molly Myra Nancy Nell Nettie Nina Nora Olga Olive Opal Pansy Patience
Patty Pearl Peggy Penny Phoebe Polly Poppy Prudence Rachel Rhoda Rosa Rose Rosie Ruby Ruth Sally Sara Selma Sophie
Stella Susan Sylvia Tabby Tess Thea Tilly Una Vera Viola Wendy Willa Winnie Yolanda Zara Zelda""".split()

BOYS = """Abel Adam Albert Alec Alfred Amos Andrew Archie Arnold Arthur August Barney Basil Ben Bernard Bertie Bill
Bob Bruno Caleb Carl Cecil Charles Chester Clarence Claud Clement Conrad Cyril Dan Daniel David Dick Donald Duncan
Edgar Edmund Edward Edwin Eli Elmer Emil Enoch Eric Ernest Ezra Felix Ferdinand Francis Frank Fred Gabriel George
Gilbert Giles Godfrey Gordon Guy Hans Harold Harry Hector Henry Herbert Hiram Horace Howard Hubert Hugh Hugo Humphrey
Isaac Ivan Jack Jacob James Jasper Jem Jerry Jim Joe John Jonas Joseph Josiah Julian Karl Keith Kurt Lars Laurie Leo
Leonard Leopold Lewis Lionel Louis Luke Magnus Mark Martin Matthew Max Michael Miles Moses Nat Ned Nicholas Nils Noah
Noel Norman Olaf Oliver Oscar Otto Owen Patrick Paul Percy Peter Philip Piers Ralph Ray Reginald Rex Richard Robert
Robin Roderick Roger Roland Rudolf Rufus Rupert Sam Samuel Seth Sidney Silas Simon Stephen Ted Theodore Thomas Tim
Tobias Toby Tom Victor Vincent Walter Wilfred Will William Wolf Zachary""".split()

# What the syllables below make is no real name, and there are thousands of them: names that a reader must remember.
FIRST = "Al Ar Bel Bran Cal Cor Dar Del Dor El Fal Fen Gal Gor Hal Har Il Jor Kal Kel Lor Lun Mal Mar Mel Mor Nal Nor Or Pel Per Quil Ral Ron Sal Ser Sil Tal Tor Ul Val Var Wil Yor Zan".split()
MIDDLE = "a e i o u an en in on ar er ir or el il al".split()
LAST_F = "dra la lia mira na nella ra ria sa thea via wyn".split()
LAST_M = "bert dan dor gar kin lon mond nard ric ron thas vin".split()

# creature: sound, home, food, young, legs, colours
CREATURES = {
    "cow": ("moo", "byre", "grass", "calf", 4), "horse": ("neigh", "stable", "hay", "foal", 4),
    "sheep": ("baa", "fold", "clover", "lamb", 4), "goat": ("meh", "shed", "leaves", "kid", 4),
    "pig": ("oink", "sty", "turnips", "piglet", 4), "dog": ("woof", "kennel", "bones", "puppy", 4),
    "cat": ("meow", "basket", "cream", "kitten", 4), "mouse": ("squeak", "hole", "cheese", "mouseling", 4),
    "rat": ("eek", "cellar", "barley", "ratling", 4), "hen": ("cluck", "coop", "corn", "chick", 2),
    "duck": ("quack", "pond", "weeds", "duckling", 2), "goose": ("honk", "yard", "oats", "gosling", 2),
    "owl": ("hoot", "hollow tree", "beetles", "owlet", 2), "crow": ("caw", "elm", "seeds", "chick", 2),
    "sparrow": ("chirp", "hedge", "crumbs", "chick", 2), "robin": ("tweet", "nest", "worms", "fledgling", 2),
    "dove": ("coo", "loft", "peas", "squab", 2), "frog": ("croak", "well", "flies", "tadpole", 4),
    "toad": ("grunt", "ditch", "slugs", "tadpole", 4), "snake": ("hiss", "pit", "eggs", "snakelet", 0),
    "bee": ("buzz", "hive", "honey", "grub", 6), "ant": ("tick", "hill", "sugar", "grub", 6),
    "cricket": ("chirr", "hearth", "moss", "nymph", 6), "spider": ("nothing", "web", "gnats", "spiderling", 8),
    "fox": ("yap", "den", "grapes", "cub", 4), "wolf": ("howl", "cave", "meat", "cub", 4),
    "bear": ("growl", "cavern", "berries", "cub", 4), "lion": ("roar", "thicket", "meat", "cub", 4),
    "tiger": ("roar", "jungle", "meat", "cub", 4), "hare": ("nothing", "form", "carrots", "leveret", 4),
    "rabbit": ("thump", "burrow", "lettuce", "bunny", 4), "squirrel": ("chatter", "drey", "nuts", "kit", 4),
    "badger": ("snuffle", "sett", "roots", "cub", 4), "hedgehog": ("snort", "heap of leaves", "snails", "hoglet", 4),
    "mole": ("sniff", "tunnel", "worms", "pup", 4), "otter": ("whistle", "holt", "fish", "pup", 4),
    "beaver": ("slap", "lodge", "bark", "kit", 4), "deer": ("bleat", "glade", "acorns", "fawn", 4),
    "donkey": ("bray", "paddock", "thistles", "foal", 4), "camel": ("groan", "desert", "dates", "calf", 4),
    "elephant": ("trumpet", "plain", "mangoes", "calf", 4), "monkey": ("chatter", "palm", "bananas", "baby", 4),
    "parrot": ("squawk", "cage", "nuts", "chick", 2), "swan": ("trumpet", "lake", "reeds", "cygnet", 2),
    "stork": ("clatter", "chimney", "frogs", "chick", 2), "eagle": ("scream", "cliff", "fish", "eaglet", 2),
    "seal": ("bark", "rock", "fish", "pup", 0), "whale": ("song", "deep", "shrimps", "calf", 0),
    "trout": ("nothing", "brook", "gnats", "fry", 0), "crab": ("click", "shell", "weed", "crablet", 10),
    "snail": ("nothing", "shell", "cabbage", "snailet", 0), "bat": ("peep", "belfry", "moths", "pup", 2),
}

THINGS = """apple arrow axe bag ball banner barrel basket bell belt bird-cage blanket boat book boot bottle bow bowl box
bracelet bread-knife broom brush bucket button cake candle cane cap card carpet cart chain chair cheese chest cloak clock
coat coin comb compass cork cradle cross crown cup cushion dagger diamond dish doll drum egg fan feather fiddle flag flask
flower flute fork fur gem glass globe glove goblet hammer handkerchief harp hat helmet hoe hook hoop horn horseshoe inkpot
jar jewel jug kettle key kite knife knot ladder ladle lamp lantern leaf letter lid lock locket loaf map marble mask medal
mirror mitten mug nail necklace needle net nut oar onion orange paintbrush pan parcel parchment pear pearl pebble pen
pencil penny picture pie pillow pin pipe pitcher plate plum pot pouch pumpkin purse quill rake rattle ribbon ring robe
rope rose ruby sack saddle sail saucer saw scarf scissors scroll seed shawl shell shield shoe shovel sickle sieve skate
sled slate slipper soap spade spindle spoon spoon-rest stamp star stick stocking stone stool sundial sword tablecloth
tambourine tart teapot telescope thimble thread toy tray trumpet tub turnip umbrella vase veil vest violin walnut wand
watch wheel whip whistle wig wreath yarn yoke""".split()

QUALITIES = """red blue green yellow white black brown grey golden silver purple pink orange crimson scarlet little big
small large tiny huge old new broken bright clean cracked crooked curved dark dusty empty fine flat frosty heavy hollow
iron copper tin brass wooden leather paper woollen silken stone glass light long lovely magic narrow painted patched plain
polished pretty queer round rusty sharp shiny short smooth soft spotted square stolen strange striped tall thick thin tidy
torn warm wet wide worn""".split()

PLACES = {  # place: how one is there
    "kitchen": "in", "garden": "in", "cellar": "in", "attic": "in", "barn": "in", "mill": "at", "church": "in",
    "school": "at", "market": "at", "forest": "in", "meadow": "in", "river": "by", "lake": "by", "well": "by",
    "bridge": "on", "hill": "on", "castle": "in", "tower": "in", "cave": "in", "harbour": "in", "beach": "on",
    "island": "on", "inn": "at", "forge": "at", "bakery": "in", "stable": "in", "orchard": "in", "vineyard": "in",
    "quarry": "in", "lighthouse": "in", "village": "in", "town": "in", "palace": "in", "hut": "in", "cottage": "in",
    "field": "in", "pond": "by", "waterfall": "by", "crossroads": "at", "gate": "at", "library": "in", "hall": "in",
    "nursery": "in", "parlour": "in", "yard": "in", "swamp": "in", "valley": "in", "courtyard": "in", "chapel": "in",
    "workshop": "in", "dairy": "in", "pantry": "in", "schoolhouse": "in", "station": "at", "shop": "in", "park": "in",
    "theatre": "in", "museum": "in", "tavern": "in", "camp": "in",
}

HIDING = {  # where a thing can be put: with which word
    "table": "on", "shelf": "on", "chest": "in", "drawer": "in", "bed": "under", "rug": "under", "bench": "under",
    "cupboard": "in", "basket": "in", "oven": "in", "barrel": "behind", "door": "behind", "curtain": "behind",
    "stairs": "under", "trunk": "in", "sack": "in", "mantelpiece": "on", "window-sill": "on", "woodpile": "behind",
    "box": "in", "stove": "behind", "bucket": "in", "stone": "under", "hedge": "behind", "old oak": "under",
}

TRADES = {  # trade: tool, ware
    "baker": ("oven", "bread"), "smith": ("hammer", "horseshoes"), "tailor": ("needle", "coats"),
    "miller": ("millstone", "flour"), "cobbler": ("awl", "shoes"), "carpenter": ("saw", "chairs"),
    "fisherman": ("net", "herrings"), "gardener": ("spade", "roses"), "weaver": ("loom", "linen"),
    "potter": ("wheel", "jugs"), "butcher": ("cleaver", "sausages"), "painter": ("brush", "pictures"),
    "clockmaker": ("file", "clocks"), "farmer": ("plough", "barley"), "cook": ("ladle", "soup"),
    "brewer": ("vat", "ale"), "mason": ("trowel", "walls"), "hunter": ("bow", "furs"), "shepherd": ("crook", "wool"),
    "doctor": ("lancet", "pills"), "hatter": ("block", "hats"), "glazier": ("diamond", "windows"),
    "chandler": ("mould", "candles"), "cooper": ("adze", "barrels"), "saddler": ("knife", "saddles"),
    "bookbinder": ("press", "books"), "fiddler": ("bow", "tunes"), "sailor": ("rope", "yarns"),
    "thatcher": ("mallet", "roofs"), "woodcutter": ("axe", "logs"),
}

FOODS = """apples pears plums cherries grapes figs dates oranges lemons peaches strawberries blackberries nuts almonds
chestnuts carrots turnips beans peas onions potatoes cabbages leeks mushrooms radishes pumpkins eggs loaves buns cakes
pies tarts biscuits pancakes dumplings sausages hams cheeses herrings trout oysters puddings""".split()

GOODS = """flour sugar salt butter honey milk cream vinegar oil rice barley oats tea coffee pepper cinnamon ginger mustard
yeast lard raisins currants candles soap thread wool ribbon paper ink chalk nails rope coal lamp-oil matches""".split()

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
NUMBERS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty""".split()
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
COLOURS = "red blue green yellow white black brown grey golden silver purple pink".split()
WEATHERS = ["it rained", "it snowed", "the sun shone", "the wind blew", "there was a fog", "it hailed", "it was hot",
            "it froze", "there was thunder", "the sky was clear", "it drizzled", "there was a frost"]
MOODS = "happy sad angry tired hungry thirsty proud afraid sleepy merry lonely curious cross calm cold bored".split()

RHYMES = [  # words that rhyme, each of them a noun that can be seen
    "cat hat mat rat bat".split(), "log frog dog hog bog".split(), "hen pen men den".split(),
    "king ring wing string swing".split(), "tree bee sea knee key".split(), "moon spoon tune balloon".split(),
    "house mouse grouse".split(), "bear chair pear stair hare".split(), "boat goat coat moat".split(),
    "cake lake snake rake".split(), "star jar car".split(), "fox box rocks clocks socks".split(),
    "sheep heap jeep".split(), "mill hill quill".split(), "bell well shell".split(), "book brook cook hook".split(),
    "town crown gown".split(), "night light kite knight".split(), "door floor shore boar".split(),
    "rain train chain lane crane".split(), "snow crow bow toe".split(), "wall ball hall stall".split(),
    "bread bed sled shed".split(), "nail snail tail whale sail".split(), "nose rose toes hose".split(),
    "bug jug mug rug slug".split(), "hand sand band land".split(), "dish fish".split(), "pie fly sky eye".split(),
    "gate plate slate".split(), "duck truck".split(), "sun bun nun".split(), "block clock rock lock".split(),
]


class Teller(random.Random):
    """Random numbers for a writer: `choice` prefers the first entries of a list, half of the time by Zipf's law, because in
    real text a few words are common and most are rare."""

    def choice(self, seq):
        n = len(seq)
        if n > 2 and self.random() < 0.6:
            return seq[int((n + 1) ** self.random()) - 1]
        return seq[int(self.random() * n)]

    def sample(self, population, k, *, counts=None):
        left = list(population)
        out = []
        for _ in range(k):
            out.append(self.choice(left))
            left.remove(out[-1])
        return out


def a(phrase):
    """The phrase with its indefinite article."""
    vowel = phrase[0].lower() in "aeiou" and not phrase.startswith(("one", "uni", "eu", "use"))
    return ("an " if vowel else "a ") + phrase


def count(n, plural, singular=None):
    """'one egg', 'three eggs', '27 eggs'."""
    word = NUMBERS[n] if n <= 20 else str(n)
    return f"{word} {(singular or plural) if n == 1 else plural}"


def plural(noun):
    irregular = {"mouse": "mice", "goose": "geese", "sheep": "sheep", "deer": "deer", "wolf": "wolves", "trout": "trout",
                 "calf": "calves", "leaf": "leaves", "knife": "knives", "loaf": "loaves", "scarf": "scarves",
                 "scissors": "pairs of scissors", "penny": "pennies", "man": "men", "fisherman": "fishermen"}
    if noun in irregular:
        return irregular[noun]
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def listed(words):
    """'a', 'a and b', 'a, b and c'."""
    words = list(words)
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + " and " + words[-1]


def capital(text):
    return text[:1].upper() + text[1:]


class Person:
    """Somebody with a name and pronouns."""

    def __init__(self, name, female):
        self.name = name
        self.he, self.him, self.his = ("she", "her", "her") if female else ("he", "him", "his")

    def __str__(self):
        return self.name


def person(rng, besides=()):
    """A person with a name that is not among those given; one in three has an invented name."""
    taken = {str(p) for p in besides}
    while True:
        female = rng.random() < 0.5
        if rng.random() < 0.33:
            name = rng.choice(FIRST) + (rng.choice(MIDDLE) if rng.random() < 0.6 else "") + rng.choice(LAST_F if female else LAST_M)
        else:
            name = rng.choice(GIRLS if female else BOYS)
        if name not in taken and not any(name[:3] == t[:3] for t in taken):
            return Person(name, female)


def people(rng, n):
    found = []
    while len(found) < n:
        found.append(person(rng, found))
    return found


def thing(rng, qualities=1):
    """'rusty key', 'little red ball'."""
    return " ".join(rng.sample(QUALITIES, qualities) + [rng.choice(THINGS)])
