#include "tui/widgets/glossary.h"

#include <stddef.h>

const struct glossary glossary[] = {
    {"tokens/round", "emitted tokens by rounds: accepted drafts and the target's own"},
    {"segment, last 32 rounds, run",
     "the rounds that all numbers on the screen are of; a segment: those since the settings changed last (v)"},
    {"acceptance", "accepted by verified drafts"},
    {"eTPL", "emitted tokens by layers loaded; a load is one layer's weights read once"},
    {"discard", "drafts thrown away by emitted tokens"},
    {"eq. 5", "SpecBound's equation 5: the speedup that acceptance and depth promise"},
    {"modelled ×", "weights that autoregressive decoding reads for the same tokens, by the weights that were read; no "
                   "time is in it"},
    {"measured of modelled",
     "measured speedup by the modelled one; below 1 is time that reading weights does not explain"},
    {"draft heads verify probe",
     "where the rounds' time went; draft is without its head calls, probe is the scope's own"},
    {"waited, learned", "time paused within rounds; passes that a policy learns in (SWIFT's search)"},
    {"tok/s", "emitted tokens by the time of drafting and verifying"},
    {"12 ±3", "one standard error, over the rounds that the number is of; of × ar, the baseline's is in it"},
    {"25/s shown · 410 engine", "what the run is slowed down to, and how fast the engine is in its rounds"},
    {"goodput", "the same of a batch: tokens of all its sequences by the rounds' time"},
    {"a tile's tok/s",
     "its tokens by the whole time of the rounds that it took part in: the speed that its reader sees"},
    {"× ar", "tok/s by those of the same text generated autoregressively (b measures it, again: further, between "
             "rounds), slowed "
             "down alike or not at all"},
    {"lossless ✓ 214", "the autoregressive tokens were generated too and are the same, one by one, so many of them"},
    {"┊", "a knob, a policy or a head was changed before this round"},
    {"p, H, KL, rank",
     "of a layer's prediction: confidence; entropy in nats; divergence from the last layer's; the rank that it "
     "gives the last layer's token, of which 1 is the best"},
    {"▒ exited, ▓ spurious",
     "layers after the exit; confident and wrong: above the threshold, with another token than the last layer's"},
    {"experts a layer",
     "of a mixture: how many of a layer's experts the sweep that verified a round had to read, on average over layers; "
     "one row "
     "reads as many as it goes to, rows together more, which is what makes verifying many of them dear"},
    {"ECE", "how far acceptance was from confidence, on average over drafts; 0: accepted as often as confident"},
    {"✓ ✗ ◆ + ◌",
     "a draft accepted, rejected; a correction; a bonus token; a draft not yet verified. The number is its exit layer"},
    {NULL, NULL},
};
