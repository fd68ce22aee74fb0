"""Tests the lens: its rounds and its join without torch, its predictions with transformers where it is installed."""

import os
import sys
import tempfile
import unittest
from types import SimpleNamespace as Space

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from specscope_trace import Draft, Model, Trace, run_json  # noqa: E402
from specscope_trace.lens import Lens, find, join, tables_of, token_bytes  # noqa: E402

try:
    import torch, transformers  # noqa: E401
except ImportError:
    torch = None


class Fake(Lens):
    """A lens without a model: pass_() takes the place of a forward pass."""

    def __init__(self, folder):
        self.count, self.layers, self.length, self.take, self.hooks, self.states = 2, [1, 2], None, None, [], {}
        self.trace = Trace(folder, model=Model("toy", layers=2, vocab=100), context=64, decode=lambda i: "w%d" % i)

    def pass_(self, start, ids):
        self.before(None, (), {"input_ids": [ids], "past_key_values": Space(get_seq_length=lambda: start)})
        self.states = {1: None, 2: None}

    read = staticmethod(int)

    def guesses(self, row):
        return iter([{"token": row}, {"token": 50 + row, "top": [(77, 0.5)]}])


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.lens, self.server, self.new = (os.path.join(folder.name, n) for n in ("lens", "server", "new"))

    def columns(self, folder, table, *names):
        return [tuple(row[name] for name in names) for row in tables_of(folder)[table]]


class WithoutTorch(Case):
    def write(self):
        with Fake(self.lens) as lens:
            lens.put([5, 6, 7])
            lens.pass_(0, [5, 6])  # a part of the prompt
            lens.pass_(2, [7, 20, 21, 22])
            lens.put([20, 30])  # one draft is accepted
            lens.pass_(5, [40])  # drafts with its own layers: beyond the text
            lens.pass_(4, [30, 40])
            lens.put([40, 41])

    def test_rows_of_rejected_drafts_are_no_predictions(self):
        self.write()
        self.assertEqual(self.columns(self.lens, "layers", "pos", "layer", "token_id"), [
            ("3", "1", "0"), ("3", "2", "50"), ("4", "1", "1"), ("4", "2", "51"),
            ("5", "1", "0"), ("5", "2", "50"), ("6", "1", "1"), ("6", "2", "51")])
        self.assertEqual(self.columns(self.lens, "tokens", "pos", "token_id", "source", "accepted")[3:], [
            ("3", "20", "draft", "1"), ("4", "21", "draft", "0"), ("5", "22", "draft", "0"),
            ("4", "30", "correction", ""), ("5", "40", "draft", "1"), ("6", "41", "bonus", "")])

    def test_tokens_that_follow_from_no_pass_are_refused(self):
        with Fake(self.lens) as lens:
            lens.put([5, 6])
            with self.assertRaisesRegex(ValueError, "does not follow"):
                lens.put([7])

    def test_layers_are_joined_with_the_rounds_of_their_positions(self):
        self.write()
        with Trace(self.server, model=Model("served", layers=1, vocab=100), context=64) as t:
            for prompt in ([9], [5, 6, 7]):
                t.begin(prompt)
                t.layer(3, 1, 99, probed_by="verify")
                t.round([Draft(20), Draft(21)], 1, 30, draft_seconds=0, verify_seconds=1)
                t.round([], 0, 40, draft_seconds=0, verify_seconds=2)
        self.assertEqual(join(self.server, self.lens, self.new), 1)
        self.assertEqual(self.columns(self.new, "layers", "run", "round", "pos", "layer", "token_id"), [
            ("1", "1", "3", "2", "99"), ("2", "1", "3", "1", "0"), ("2", "1", "3", "2", "50"), ("2", "1", "4", "1", "1"),
            ("2", "1", "4", "2", "51"), ("2", "2", "5", "1", "0"), ("2", "2", "5", "2", "50")])
        tokens, layers, rounds = ([int(e) for e, in self.columns(self.new, table, "event")]
                                  for table in ("tokens", "layers", "rounds"))
        self.assertTrue(tokens[-2] < layers[1] < layers[4] < rounds[2] < tokens[-1] < layers[5])
        info = run_json(self.new)
        self.assertEqual((info["model"]["name"], info["model"]["layers"]), ("served", 2))
        self.assertEqual(info["closed_event"], sum(info["lines"].values()))
        self.assertIn(("77", "w77"), self.columns(self.new, "vocab", "token_id", "text"))
        with self.assertRaisesRegex(ValueError, "no text"), Fake(self.lens + "2"):
            join(self.server, self.lens + "2", self.new + "2")

    def test_tokens_are_their_bytes(self):
        for pieces, texts in ((("<\u2581>", "\u0120a\u00e2\u013a", "\u0120"), [b"< >", b" a\xe2\x98", b" "]),
                              (("<s>", "\u2581caf\u00e9", "<0x0A>"), [b"<s>", " caf\u00e9".encode(), b"\n"])):
            text = token_bytes(Space(get_vocab=lambda: pieces, added_tokens_decoder=[0],
                                     convert_ids_to_tokens=pieces.__getitem__))
            self.assertEqual([text(i) for i in range(len(pieces))], texts)

    def test_a_model_without_a_final_norm_is_refused(self):
        with self.assertRaisesRegex(ValueError, "no list of 2 layers with a final norm beside it .norm, "):
            find(Space(named_modules=lambda: [("", Space(named_children=lambda: [("blocks", [1, 2])]))]), 2)


@unittest.skipIf(torch is None, "torch or transformers is not installed")
class WithTransformers(Case):
    def model(self, family="Llama", **more):
        torch.manual_seed(1)
        config = getattr(transformers, family + "Config")(
            vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=4, num_attention_heads=4, head_dim=8,
            num_key_value_heads=4, bos_token_id=1, eos_token_id=None, pad_token_id=0, initializer_range=0.5, **more)
        return getattr(transformers, family + "ForCausalLM")(config).eval().requires_grad_(False)

    def check(self, model, layers=None, **more):
        """Compares the trace of a generation with the model's own hidden states."""
        with Lens(model, self.lens, layers=layers) as lens:
            out = model.generate(torch.tensor([[1, 5, 6, 7, 5, 6]]), do_sample=False, max_new_tokens=24, streamer=lens,
                                 **more)
        tokens = self.columns(self.lens, "tokens", "pos", "token_id", "committed")
        self.assertEqual({int(r[0]): int(r[1]) for r in tokens if r[2] != "0"}, dict(enumerate(out[0].tolist())))
        states = model(out, output_hidden_states=True).hidden_states
        for pos, layer, token, p in self.columns(self.lens, "layers", "pos", "layer", "token_id", "confidence"):
            state = states[int(layer)][0, int(pos) - 1]  # the last one has the norm
            q = model.lm_head(state if layer == "4" else model.model.norm(state)).softmax(-1)
            self.assertEqual(int(token), int(q.argmax()))
            self.assertAlmostEqual(float(p), float(q.max()), 4)

    def test_predictions_are_those_of_the_hidden_states(self):
        self.check(self.model(), layers=[2])
        self.assertEqual(self.columns(self.lens, "layers", "layer"), [("2",), ("4",)] * 24)

    def test_predictions_of_rounds_with_drafts_are_the_same(self):
        self.check(self.model(), assistant_early_exit=3)
        self.assertEqual({"0", "1", ""}, {a for a, in self.columns(self.lens, "tokens", "accepted")})

    def test_caps_and_scales_are_the_models_own_or_refused(self):
        models = [self.model("Gemma2", final_logit_softcapping=0.5), self.model("Cohere", logit_scale=7.0),
                  self.model("Granite", logits_scaling=0.1), self.model()]
        for i, model in enumerate(models):
            with Lens(model, self.lens + str(i)) as lens:
                model.generate(torch.tensor([[1, 5]]), do_sample=False, max_new_tokens=4, streamer=lens)
        models[3].config.logits_scaling = 0.1  # which Llama does not know
        with Lens(models[3], self.new) as lens, self.assertRaisesRegex(ValueError, "does not know this architecture"):
            models[3].generate(torch.tensor([[1, 5]]), do_sample=False, max_new_tokens=4, streamer=lens)
