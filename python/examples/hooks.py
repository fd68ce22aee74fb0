"""Each layer's prediction of each token of a plain PyTorch loop, by forward hooks, written as a trace.

A hook on each decoder layer stores the hidden state of the last position. The model's final norm and LM head convert each state
into that layer's prediction (the logit lens). The hooks do not change the text.

    python3 python/examples/hooks.py run1 [--model HuggingFaceTB/SmolLM-135M] [--prompt …]
    specscope replay --follow run1        # in another terminal

Without --model the example uses a tiny random model, so it runs anywhere."""

import argparse
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import torch

from early_exit import load
from specscope_trace import Model, Policy, Trace


class Lens:
    """Keeps the last position's hidden state after each layer."""

    def __init__(self, layers):
        self.states = [None] * len(layers)
        self.hooks = [layer.register_forward_hook(self._keep(i)) for i, layer in enumerate(layers)]

    def _keep(self, i):
        def hook(module, inputs, output):
            hidden = output[0] if isinstance(output, tuple) else output
            self.states[i] = hidden[0, -1].detach()

        return hook

    def close(self):
        for hook in self.hooks:
            hook.remove()


def write_guesses(trace, lens, norm, head, pos):
    """Writes all layers' predictions at `pos`; returns the first layer that agrees with the last one."""
    log_p = head(norm(torch.stack(lens.states))).float().log_softmax(-1)
    p, last = log_p.exp(), log_p[-1]
    final = int(last.argmax())
    first = len(lens.states)
    for i in range(len(lens.states)):
        best = p[i].topk(5)
        token = int(best.indices[0])
        if token == final:
            first = min(first, i + 1)
        trace.layer(pos, i + 1, token, float(best.values[0]), entropy=float(-(p[i] * log_p[i]).sum()),
                    kl_final=float((p[-1] * (last - log_p[i])).sum()), rank_final=int((log_p[i] > log_p[i, final]).sum()),
                    final_agrees=token == final, top=list(zip(best.indices.tolist(), best.values.tolist())), head=0,
                    probed_by="verify" if i + 1 == len(lens.states) else "scope")
    return first


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder")
    options.add_argument("--model")
    options.add_argument("--prompt", default="The cat sat on")
    options.add_argument("--tokens", type=int, default=48)
    o = options.parse_args()
    model, ids, decode = load(o.model, o.prompt)
    base, config = model.base_model, model.config
    lens = Lens(base.layers)
    described = Model(o.model or "tiny random llama", layers=config.num_hidden_layers, vocab=config.vocab_size,
                      architecture=config.model_type, width=config.hidden_size)
    policy = Policy("plain", title="a PyTorch loop", series=[
        {"key": "depth", "title": "first layer that agrees", "form": "line", "rows": 1, "cols": 1}])
    with torch.no_grad(), Trace(o.folder, model=described, policy=policy, context=ids.shape[1] + o.tokens, prompt=o.prompt,
                                decode=decode, backend="torch", device=str(model.device)) as trace:
        trace.begin(ids[0].tolist())
        past, row = None, ids
        for _ in range(o.tokens):
            begin = time.monotonic()
            out = model(row, past_key_values=past, use_cache=True)
            past, token = out.past_key_values, int(out.logits[0, -1].argmax())
            took = time.monotonic() - begin
            trace.series("depth", write_guesses(trace, lens, base.norm, model.lm_head, trace.position))
            trace.round([], 0, token, draft_seconds=0, verify_seconds=took, layers_loaded=config.num_hidden_layers,
                        heads_loaded=1)
            row = torch.tensor([[token]])
    lens.close()


if __name__ == "__main__":
    main()
