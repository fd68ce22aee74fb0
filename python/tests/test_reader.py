"""What pandas gets of a trace."""

import os
import sys
import tempfile
import unittest
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from specscope_trace import Model, Trace, read  # noqa: E402

try:
    import pandas  # noqa: F401
except ImportError:
    pandas = None


@unittest.skipIf(pandas is None, "pandas is not installed")
class Frames(unittest.TestCase):
    def test_whole_rounds_are_there_and_others_are_not(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t")
            t = Trace(path, model=Model("toy", layers=4, vocab=10), context=32, decode=lambda i: b"\xff\\%d\n" % i)
            t.begin([1, 2])
            t.layer(2, 1, 3, 0.5)
            t.round([3], 1, 4, draft_seconds=0.001, verify_seconds=0.002)
            t.layer(4, 1, 3)
            t.flush()
            with open(os.path.join(path, "rounds.csv"), "a") as f:
                f.write("99,1,1,0,2")
            frames = read(path)
            self.assertEqual((len(frames["rounds"]), len(frames["layers"]), len(frames["tokens"])), (1, 1, 4))
            self.assertEqual(frames["vocab"]["text"].iloc[0], b"\xff\\1\n")
            drafts = frames["tokens"][frames["tokens"]["source"] == "draft"]
            self.assertEqual(drafts["accepted"].iloc[0], 1)
            self.assertTrue(frames["layers"]["kl_final"].isna().all())
            os.remove(os.path.join(path, "layers.csv"))
            self.assertEqual(len(read(path)["layers"]), 0)
            t.close()

    def test_former_names_of_columns_are_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t")
            with Trace(path, model=Model("toy", layers=4, vocab=10), context=32) as t:
                t.begin([1, 2])
                t.round([3], 1, 4, draft_seconds=0.001, verify_seconds=0.002)
            name = os.path.join(path, "rounds.csv")
            with open(name, encoding="utf-8") as f:
                header, line = f.read().splitlines()
            values = line.split(",")
            values[header.split(",").index("learning_us")] = "1.5"
            with open(name, "w", encoding="utf-8") as f:
                f.write(header.replace("learning_us", "aside_us") + "\n" + ",".join(values) + "\n")
            self.assertEqual(read(path)["rounds"]["learning_us"].tolist(), [1.5])

    def test_a_table_that_was_cut_after_closing_is_read_with_a_warning(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t")
            with Trace(path, model=Model("toy", layers=4, vocab=10), context=32) as t:
                t.begin([1, 2])
                t.round([3], 1, 4, draft_seconds=0.001, verify_seconds=0.002)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.assertEqual(len(read(path)["tokens"]), 4)
            name = os.path.join(path, "tokens.csv")
            os.truncate(name, os.path.getsize(name) - 1)
            with self.assertWarnsRegex(UserWarning, "tokens.csv has 3 lines, and 4 when the trace was closed"):
                self.assertEqual(len(read(path)["tokens"]), 3)


if __name__ == "__main__":
    unittest.main()
