"""Tests the writer's output and its refusals."""

import csv
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from specscope_trace import Draft, Model, Policy, Trace, run_json  # noqa: E402
from specscope_trace.tables import COLUMNS, escape, field, unescape  # noqa: E402

WORDS = [b"a", b" b", b"\xff", " \u2603".encode(), b'"q"\n', b"\\", b"\x1b[2J", b"", "\u202e".encode(), b"z"]


class Written(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "t")
        self.addCleanup(self.folder.cleanup)

    def open(self, **more):
        return Trace(self.path, model=Model("toy", layers=4, vocab=10), policy="early", context=32, decode=WORDS.__getitem__,
                     **more)

    def rows(self, table):
        with open(os.path.join(self.path, table + ".csv"), encoding="utf-8", newline="") as f:
            return list(csv.DictReader(f))

    def test_a_round_is_its_lines_and_its_commit_record(self):
        with self.open() as t:
            t.begin([1, 2])
            t.layer(2, 3, 4, 0.25, top=[(4, 0.25), (5, 0.125)])
            t.round([Draft(4, exit_layer=3, confidence=0.25), Draft(5, exit_layer=2), 6], 1, 7, draft_seconds=0.001,
                    verify_seconds=0.002, layers_loaded=9, reject_rank=3)
            self.assertEqual(t.position, 4)
        tokens = self.rows("tokens")
        self.assertEqual([r["source"] for r in tokens], ["prompt"] * 2 + ["draft"] * 3 + ["correction"])
        self.assertEqual([r["pos"] for r in tokens], ["0", "1", "2", "3", "4", "3"])
        self.assertEqual([r["accepted"] for r in tokens], ["", "", "1", "0", "0", ""])
        self.assertEqual([(r["parent"], r["candidate"]) for r in tokens[2:5]], [("0", "1"), ("1", "2"), ("2", "3")])
        (r,) = self.rows("rounds")
        self.assertEqual([r[c] for c in ("round", "draft_us", "verify_us", "drafted", "verified", "accepted", "emitted")],
                         ["1", "1000", "2000", "3", "3", "1", "2"])
        self.assertEqual((r["layers_loaded"], r["heads_loaded"], r["threshold"]), ("9", "", ""))
        self.assertEqual((r["reject_rank"], r["verify_experts"]), ("3", ""))
        self.assertEqual(self.rows("layers")[0]["top"], "4:0.25 5:0.125")
        self.assertEqual(self.rows("controls")[-1]["name"], "end")
        self.assertEqual(run_json(self.path)["closed_event"], int(self.rows("controls")[-1]["event"]))
        self.assertEqual(run_json(self.path)["lines"], {
            table + ".csv": len(self.rows(table)) for table in COLUMNS if table != "experts"})

    def test_drafts_after_the_end_of_the_text_are_cut(self):
        with self.open() as t:
            t.begin([1, 2])
            t.round([Draft(4), Draft(5), Draft(6), Draft(7)], 2, draft_seconds=0, verify_seconds=0)
            self.assertEqual(t.position, 4)
        self.assertEqual([r["accepted"] for r in self.rows("tokens")], ["", "", "1", "1", "", ""])
        (r,) = self.rows("rounds")
        self.assertEqual([r[c] for c in ("drafted", "verified", "accepted", "emitted", "cut")], ["2", "2", "2", "2", "2"])

    def test_run_json_has_the_costs_of_steps(self):
        cost = {"context": 0, "layer": [1.5] * 12}
        with self.open(cost=cost):
            pass
        self.assertEqual(run_json(self.path)["cost"], cost)

    def test_a_mixtures_experts_come_behind_the_tokens_heaviest_first(self):
        with Trace(self.path, model=Model("toy", layers=4, vocab=10, experts=20, experts_used=2), policy="early",
                   context=32) as t:
            t.begin([1, 2])
            t.experts(2, 3, [(0, 0.25), (19, 0.5), (7, 0.25)])
            with self.assertRaises(ValueError):
                t.experts(2, 3, [(20, 0.5)])
            with self.assertRaises(ValueError):
                t.experts(2, 3, [(1, float("nan"))])
            t.round([4], 1, 7, draft_seconds=0, verify_seconds=0, verify_experts=3.5)
        (r,) = self.rows("experts")
        self.assertEqual((r["pos"], r["layer"], r["experts"]), ("2", "3", "19:0.5 0:0.25 7:0.25"))
        self.assertGreater(int(r["event"]), int(self.rows("tokens")[-1]["event"]))
        (r,) = self.rows("rounds")
        self.assertEqual(r["verify_experts"], "3.5")
        self.assertEqual(run_json(self.path)["model"]["experts"], 20)
        with self.assertRaises(ValueError):
            Trace(self.path + "3", model=Model("toy", layers=3, vocab=1, layer_kinds="ra"), policy="x", context=1)
        with self.assertRaises(ValueError):
            Model("toy", layers=1, vocab=1).experts or Trace(self.path + "2", model=Model(
                "toy", layers=1, vocab=1, experts=2, experts_used=3), policy="x", context=1)

    def test_events_ascend_and_no_two_are_the_same(self):
        with self.open() as t:
            t.begin([1])
            for i in range(5):
                t.round([i, i], 2 - i % 3, 9, draft_seconds=0, verify_seconds=1)
        numbers = []
        self.assertFalse(os.path.exists(os.path.join(self.path, "experts.csv")))  # a dense model has none
        for table in COLUMNS.keys() - {"experts"}:
            of_table = [int(r["event"]) for r in self.rows(table)]
            self.assertEqual(of_table, sorted(set(of_table)))
            numbers += of_table
        self.assertEqual(len(numbers), len(set(numbers)))

    def test_a_round_that_is_over_is_on_disk_and_one_that_is_not_is_not(self):
        t = self.open()
        t.begin([1])
        t.layer(1, 1, 2)
        self.assertEqual(self.rows("layers"), [])
        t.round([], 0, 2, draft_seconds=0, verify_seconds=1)
        self.assertEqual((len(self.rows("layers")), len(self.rows("rounds"))), (1, 1))
        self.assertNotIn("closed_event", run_json(self.path))
        t.close()
        t.close()

    def test_a_tree_puts_drafts_where_their_parents_say(self):
        with self.open() as t:
            t.begin([1])
            t.round([Draft(2), Draft(3, parent=0), Draft(4, parent=2)], [False, True, True], 5, draft_seconds=0,
                    verify_seconds=1)
        drafts = [r for r in self.rows("tokens") if r["source"] == "draft"]
        self.assertEqual([r["pos"] for r in drafts], ["1", "1", "2"])
        self.assertEqual(self.rows("tokens")[-1]["pos"], "3")

    def test_what_cannot_be_is_refused_and_changes_nothing(self):
        t = self.open()
        with self.assertRaises(ValueError):
            t.round([], 0, 1, draft_seconds=0, verify_seconds=0)  # nothing has begun
        t.begin([1])
        for wrong in (lambda: t.round([10], 0, 1, draft_seconds=0, verify_seconds=0),
                      lambda: t.round([1], 2, 1, draft_seconds=0, verify_seconds=0),
                      lambda: t.round([1] * 64, 0, 1, draft_seconds=0, verify_seconds=0),
                      lambda: t.round([1] * 32, 32, 1, draft_seconds=0, verify_seconds=0),
                      lambda: t.round([1], [True, False], 1, draft_seconds=0, verify_seconds=0),
                      lambda: t.round([1], 0, -1, draft_seconds=0, verify_seconds=0),
                      lambda: t.round([1], 0, 2, draft_seconds=0, verify_seconds=0, reject_rank=-1),
                      lambda: t.round([Draft(1, exit_layer=5)], 0, 1, draft_seconds=0, verify_seconds=0),
                      lambda: t.layer(0, 0, 1), lambda: t.layer(99, 1, 1), lambda: t.control("policy", "other"),
                      lambda: t.series("x" * 24, 1), lambda: t.begin([1] * 99)):
            before = (t._number, t.position)
            with self.assertRaises(ValueError):
                wrong()
            self.assertEqual((t._number, t.position), before)
        t.close()
        with self.assertRaises(FileExistsError):
            self.open()
        for policy in ("", "two words", "x" * 16):
            with self.assertRaises(ValueError):
                Trace(self.path + "2", model=Model("toy", layers=4, vocab=10), policy=policy, context=8)

    def test_any_bytes_come_back(self):
        with self.open(prompt=b"\x00\\x \xe2\x98\x83") as t:
            t.begin(list(range(10)))
        self.assertEqual([unescape(r["text"]) for r in self.rows("vocab")], WORDS)
        self.assertEqual(unescape(run_json(self.path)["prompt"]), b"\x00\\x \xe2\x98\x83")
        for text in (b"", b"\\x41", bytes(range(256))):
            self.assertEqual(unescape(escape(text)), text)
        with self.assertRaises(ValueError):
            unescape("\\q")

    def test_numbers_are_written_as_readers_want_them(self):
        self.assertEqual([field("confidence", v) for v in (None, float("nan"), 0.1, 1.0, 1e-30, True)],
                         ["", "", "0.1", "1", "1e-30", "1"])

    def test_a_policy_declares_its_knobs_and_series(self):
        knob = {"name": "tau", "symbol": "τ", "help": "", "kind": "real", "min": 0.0, "max": 1.0, "step": 0.1, "default": 0.5,
                "start": 0.5}
        with Trace(self.path, model=Model("toy", layers=4, vocab=10, rho=0.5, parameters=7), context=8,
                   policy=Policy("mine", knobs=[knob])) as t:
            t.begin([1])
            t.control("tau", "0.7", "0.5")
        info = run_json(self.path)
        self.assertEqual((info["policies"][0]["knobs"], info["model"]["parameters"]), ([knob], "7"))


if __name__ == "__main__":
    unittest.main()
