"""LayerSkip-style early exit with transformers, written as a trace.

transformers drafts with the model's first layers and verifies with all of them when generate() is given
`assistant_early_exit`. The drafts and their verdicts pass through the assistant's candidate generator: get_candidates() returns
the drafts of a round, and update_candidate_strategy() receives the number of accepted ones.

    python3 python/examples/early_exit.py run1 [--model facebook/layerskip-llama3.2-1B] [--exit 4] [--prompt …]
    specscope replay --follow run1        # in another terminal

Without --model the example uses a tiny random model, so it runs anywhere."""

import argparse
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM
from transformers.generation import candidate_generator

from specscope_trace import Draft, Model, Trace


class Watched(candidate_generator.EarlyExitCandidateGenerator):
    """The candidate generator of transformers, which also writes the trace."""

    trace: Trace

    def get_candidates(self, input_ids, *args, **kwargs):
        self._verified_since = None
        begin = time.monotonic()
        candidates, logits = super().get_candidates(input_ids, *args, **kwargs)
        self._drafting = time.monotonic() - begin
        self._verifying_since = time.monotonic()
        self._drafted = candidates[0, input_ids.shape[1]:].tolist()
        self._confidence = []
        if logits is not None:
            self._p = p = logits[0].float().softmax(-1)
            self._confidence = [p[i, token].item() for i, token in enumerate(self._drafted)]
        return candidates, logits

    def update_candidate_strategy(self, input_ids, scores, num_matches):
        verifying = time.monotonic() - self._verifying_since
        accepted = int(num_matches)
        depth = self.assistant_early_exit
        drafts = [Draft(token, exit_layer=depth, confidence=p) for token, p in zip(self._drafted, self._confidence)]
        for i, d in enumerate(drafts):
            self.trace.layer(self.trace.position + i, depth, d.token, d.confidence, final_agrees=i < accepted)
        token = int(input_ids[0, -1])
        rank = int((self._p[accepted] > self._p[accepted, token]).sum()) + 1 if accepted < len(drafts) else None
        self.trace.round(drafts, accepted, token, draft_seconds=self._drafting, verify_seconds=verifying,
                         reject_rank=rank, exit_layer=depth, layers_loaded=depth * (len(drafts) + 1) + self.trace.model.layers,
                         heads_loaded=len(drafts) + 1)
        super().update_candidate_strategy(input_ids, scores, num_matches)


def tiny():
    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers=8, num_attention_heads=4,
                         max_position_embeddings=512, bos_token_id=1, eos_token_id=None, pad_token_id=0)
    return LlamaForCausalLM(config).eval()


def load(name, prompt):
    """Returns a model, its prompt's ids and a function from an id to its text; without a name the tiny one, whose ids are bytes."""
    if name is None:
        return tiny(), torch.tensor([[1] + list(prompt.encode())]), lambda i: bytes([i])
    tokenizer = AutoTokenizer.from_pretrained(name)
    ids = tokenizer(prompt, return_tensors="pt").input_ids
    return AutoModelForCausalLM.from_pretrained(name), ids, lambda i: tokenizer.decode([i])


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder")
    options.add_argument("--model")
    options.add_argument("--exit", type=int, default=4)
    options.add_argument("--prompt", default="The cat sat on")
    options.add_argument("--tokens", type=int, default=64)
    o = options.parse_args()
    model, ids, decode = load(o.model, o.prompt)
    config = model.config
    described = Model(o.model or "tiny random llama", layers=config.num_hidden_layers, vocab=config.vocab_size,
                      architecture=config.model_type, width=config.hidden_size, types=str(model.dtype).replace("torch.", ""),
                      parameters=model.num_parameters())
    with Trace(o.folder, model=described, policy="early-exit", context=ids.shape[1] + o.tokens + 64, prompt=o.prompt,
               decode=decode, backend="transformers", device=str(model.device)) as trace:
        trace.begin(ids[0].tolist())
        Watched.trace = trace
        original = candidate_generator.EarlyExitCandidateGenerator
        from transformers.generation import utils

        utils.EarlyExitCandidateGenerator = Watched
        try:
            out = model.generate(ids, do_sample=False, max_new_tokens=o.tokens, assistant_early_exit=o.exit)
        finally:
            utils.EarlyExitCandidateGenerator = original
    print("%d tokens generated, %d in the trace" % (out.shape[1] - ids.shape[1], trace.position - ids.shape[1]))


if __name__ == "__main__":
    main()
