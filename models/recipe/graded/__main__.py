"""Writes generated text of graded difficulty: python3 models/recipe/graded --seed 1 --bytes 40000000 > graded.txt

Documents are separated by an empty line. The same seed gives the same text. The kinds of text
need different abilities to predict: some repeat themselves (verse), some need memory (tracking), a look-up (language, table) or a
calculation (sums, programs)."""

import argparse
import sys

import arithmetic
import talk
import tracking
import verse
from words import Teller

KINDS = [  # what, how much of it in documents
    (tracking.tale, 14), (tracking.errand, 5), (tracking.switch, 5),
    (talk.dialogue, 9), (talk.letter, 4), (talk.language, 4), (talk.riddle, 5), (talk.quarrel, 4), (talk.shop, 4),
    (verse.cumulative, 4), (verse.asked_in_turn, 3), (verse.countdown, 3), (verse.verses, 5), (verse.week, 4),
    (verse.animals, 3), (verse.echo, 3),
    (arithmetic.story_sum, 6), (arithmetic.written_sums, 3), (arithmetic.times_table, 1), (arithmetic.sequence, 3),
    (arithmetic.shopping_list, 4), (arithmetic.table, 4), (arithmetic.directions, 3), (arithmetic.words_backwards, 3),
    (arithmetic.calendar, 3), (arithmetic.program, 6), (arithmetic.recipe, 3),
]


def document(seed, i):
    """Document i of a seed; it does not depend on earlier documents."""
    rng = Teller(f"{seed}/{i}")
    (kind,) = rng.choices([k for k, _ in KINDS], [w for _, w in KINDS])
    return kind(rng, rng.choices((1, 2, 3), (4, 4, 3))[0])


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--bytes", type=int, default=1_000_000)
    options = options.parse_args()
    written = i = 0
    while written < options.bytes:
        text = document(options.seed, i) + "\n\n"
        sys.stdout.write(text)
        written += len(text.encode())
        i += 1


if __name__ == "__main__":
    main()
