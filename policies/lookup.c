#include "policies/lookup.h"

#include <math.h>

enum { KNOB_MOST, KNOB_LEAST, KNOB_DRAFTS, KNOB_MATCH }; /* LOOKUP_NGRAM_KNOBS */

bool
lookup_ngram_open(struct policy *p, int least, const char *drafts, const char *symbol, const char *help)
{
    static const char *const matches[] = {"recent", "frequent", NULL};
    return policy_number(p, "n_max", "n_max", 1, 32, 1, 4, "last tokens to look for, at most") &&
           policy_number(p, "n_min", "n_min", 1, 32, 1, least, "last tokens to look for, at least") &&
           policy_number(p, drafts, symbol, 1, LOOKUP_NODES, 1, 8, help) &&
           policy_choice(p, "match", "match", matches, 0, "occurrence: the latest, or the usual continuation") &&
           policy_series(p, "match", "tokens that match", SERIES_LINE, 1, 1);
}

struct lookup_rule
lookup_ngram(const double *value)
{
    const uint32_t most = (uint32_t)value[KNOB_MOST], least = (uint32_t)value[KNOB_LEAST];
    const uint32_t drafts = (uint32_t)value[KNOB_DRAFTS];
    return (struct lookup_rule){.least = least < most ? least : most,
                                .most = most,
                                .latest = value[KNOB_MATCH] < 1,
                                .depth = drafts,
                                .nodes = drafts,
                                .full = "k"};
}

/* Occurrence i is bit i of a set; the latest one is bit 0. */
typedef uint64_t set_t;
_Static_assert(LOOKUP_PLACES == 64, "a set has a bit for each occurrence");

struct places {
    uint32_t next[LOOKUP_PLACES]; /* position of the token after the occurrence */
    uint32_t n, length;           /* tokens that match */
};

/* A candidate for the next draft: the most frequent one of a set of occurrences that agree up to its parent. */
struct continuation {
    /* all: the occurrences along the parent's path; chosen: those of them that continue with `token` */
    set_t all, chosen;
    int32_t parent;
    uint32_t depth; /* tokens between the match and this one */
    token_t token;
};

static uint32_t
count(set_t set)
{
    return (uint32_t)__builtin_popcountll(set);
}

static uint32_t
match_length(const token_t *text, uint32_t end, uint32_t last, uint32_t most)
{
    uint32_t length = 0;
    while (length < most && length <= last && text[last - length] == text[end - length])
        length++;
    return length;
}

static void
find(struct places *p, const struct lookup_rule *rule, const token_t *text, uint32_t n)
{
    *p = (struct places){0};
    for (uint32_t last = n - 1; last-- > 0;) {
        if (text[last] != text[n - 1])
            continue;
        const uint32_t length = match_length(text, n - 1, last, rule->most);
        if (length < rule->least || length < p->length)
            continue;
        if (length > p->length)
            *p = (struct places){.length = length};
        if (p->n < (rule->latest ? 1 : LOOKUP_PLACES))
            p->next[p->n++] = last + 1;
    }
}

/* Finds the most frequent continuation of the occurrences in `all`; of equally frequent ones the latest. Returns false
 * if there is none. */
static bool
most_frequent(const struct places *p, const token_t *text, uint32_t n, struct continuation *c)
{
    c->chosen = 0;
    for (set_t left = c->all; left != 0;) {
        set_t same = 0;
        token_t token = TOKEN_NONE;
        for (set_t rest = left; rest != 0; rest &= rest - 1) {
            const set_t bit = rest & -rest;
            const uint32_t at = p->next[__builtin_ctzll(rest)] + c->depth;
            if (at >= n) {
                left &= ~bit;
                c->all &= ~bit;
            } else if (same == 0 || text[at] == token) {
                token = text[at];
                same |= bit;
            }
        }
        left &= ~same;
        if (count(same) > count(c->chosen)) {
            c->chosen = same;
            c->token = token;
        }
    }
    return c->chosen != 0;
}

/* The likeliest candidate; of equally likely ones the least deep, then the one that occurred last. */
static uint32_t
best_of(const struct continuation *c, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++) {
        const uint32_t a = count(c[i].chosen), b = count(c[best].chosen);
        const bool later = __builtin_ctzll(c[i].chosen) < __builtin_ctzll(c[best].chosen);
        if (a > b || (a == b && (c[i].depth < c[best].depth || (c[i].depth == c[best].depth && later))))
            best = i;
    }
    return best;
}

/* Returns the depth of the tree, and why it is not deeper. */
static uint32_t
depth_of(const struct lookup_rule *rule, uint32_t matched, uint32_t budget, const char **reason)
{
    const double reach = rule->per_match > 0 ? floor(rule->per_match * matched) : rule->depth;
    const bool short_match = reach < rule->depth;
    const uint32_t depth = short_match ? (uint32_t)reach : rule->depth;
    *reason = budget < depth ? "budget" : short_match ? rule->full_match : rule->full;
    return budget < depth ? budget : depth;
}

void
lookup_text(struct lookup *l, const struct lookup_rule *rule, const token_t *text, uint32_t n, uint32_t budget)
{
    struct places p;
    const char *full;
    find(&p, rule, text, n);
    *l = (struct lookup){.matched = p.length, .reason = p.n > 0 ? "end of text" : "no match"};
    const uint32_t depth = depth_of(rule, p.length, budget, &full);
    const bool tree = rule->nodes > rule->depth;
    /* The sets of candidates are disjoint: there are at most as many candidates as occurrences. */
    struct continuation candidate[LOOKUP_PLACES] = {
        {.all = p.n < LOOKUP_PLACES ? ((set_t)1 << p.n) - 1 : ~(set_t)0, .parent = -1}};
    uint32_t waiting = p.n > 0 && most_frequent(&p, text, n, &candidate[0]);
    while (waiting > 0) {
        struct continuation *c = &candidate[best_of(candidate, waiting)];
        const double probability = (double)count(c->chosen) / p.n;
        if (probability < rule->probability || l->n == rule->nodes) {
            l->reason = probability < rule->probability ? "probability" : tree ? rule->full_tree : full;
            return;
        }
        if (c->depth == depth) {
            l->reason = full;
            *c = candidate[--waiting];
            continue;
        }
        struct continuation next = {.all = c->chosen, .parent = (int32_t)l->n, .depth = c->depth + 1};
        l->node[l->n++] = (struct lookup_node){c->parent, c->depth + 1, c->token, probability};
        c->all &= ~c->chosen;
        if (!tree || !most_frequent(&p, text, n, c))
            *c = candidate[--waiting];
        if (most_frequent(&p, text, n, &next))
            candidate[waiting++] = next;
    }
}

static bool
draft_one(struct round *r, const struct lookup_rule *rule)
{
    struct lookup l;
    int32_t node[LOOKUP_NODES];
    lookup_text(&l, rule, r->tokens, r->n_tokens, r->budget);
    for (uint32_t i = 0; i < l.n; i++) {
        const struct proposal draft = {.parent = l.node[i].parent < 0 ? 0 : node[l.node[i].parent],
                                       .token = l.node[i].token,
                                       .exit_layer = NO_LAYER,
                                       .q = DIST_NONE};
        if ((node[i] = round_propose(r, &draft)) < 0)
            return false;
    }
    round_report(r, "match", 0, l.matched);
    round_summary(r, l.reason, NO_LAYER, rule->probability > 0 ? rule->probability : (double)NAN, -1, (int)rule->depth);
    return true;
}

bool
lookup_draft(struct policy *const *p, struct round *const *r, uint32_t n, struct lookup_rule (*rule_of)(const double *))
{
    for (uint32_t i = 0; i < n; i++) {
        const struct lookup_rule rule = rule_of(p[i]->value);
        if (!draft_one(r[i], &rule))
            return false;
    }
    return true;
}

void
lookup_what_if_round(struct what_if *w, const struct lookup_rule *rule)
{
    const struct layer_record *record = w->record;
    const uint32_t after = record->n - w->at; /* tokens after the pending one */
    struct lookup l = {0};
    int32_t end = -1; /* of the accepted path */
    if (after < record->n_text)
        lookup_text(&l, rule, record->text, record->n_text - after, w->budget);
    const uint32_t pending = record->first + w->at;
    for (uint32_t i = 0; i < l.n; i++) {
        const token_t next = layer_record_token(record, pending + w->accepted + 1);
        const bool right = !record->accepts && l.node[i].parent == end && l.node[i].token == next;
        what_if_propose_token(w, l.node[i].depth, right);
        end = right ? (int32_t)i : end;
    }
}

bool
lookup_what_if(const struct layer_record *record, struct lookup_rule rule, struct tally *out)
{
    struct what_if w;
    what_if_begin(&w, record, out);
    while (what_if_round(&w)) {
        lookup_what_if_round(&w, &rule);
        what_if_verify(&w);
    }
    return true;
}
