#include "policies/draft_tree.h"

void
draft_tree_add(struct draft_tree *t, int32_t parent, const slot_t *row, const struct prediction *g, uint32_t topk)
{
    for (uint32_t i = 0; i < topk && g->top[i] != TOKEN_NONE; i++)
        t->node[t->n++] = (struct draft_node){.parent = parent,
                                              .token = g->top[i],
                                              .path = (parent < 0 ? 1 : t->node[parent].path) * (double)g->top_p[i],
                                              .p = g->top_p[i],
                                              .row = row,
                                              .from = *g};
}

void
draft_tree_keep(struct draft_tree *t, uint32_t first, uint32_t most)
{
    for (uint32_t i = first; i < t->n; i++)
        t->node[i].kept = false;
    for (uint32_t n = 0; n < most && n < t->n - first; n++) {
        uint32_t best = t->n;
        for (uint32_t i = first; i < t->n; i++)
            if (!t->node[i].kept && (best == t->n || t->node[i].path > t->node[best].path))
                best = i;
        t->node[best].kept = true;
    }
}

void
draft_tree_prune(struct draft_tree *t, uint32_t most)
{
    int32_t now[DRAFT_TREE]; /* the places of nodes after the call */
    uint32_t n = 0, level = 0;
    draft_tree_keep(t, 0, most);
    for (uint32_t i = 0; i < t->n; i++) {
        if (!t->node[i].kept)
            continue;
        level += i < t->level;
        now[i] = (int32_t)n;
        t->node[n] = t->node[i];
        if (t->node[n].parent >= 0)
            t->node[n].parent = now[t->node[n].parent];
        n++;
    }
    t->n = n;
    t->level = level;
}

bool
draft_tree_propose(struct round *d, struct draft_tree *t, uint32_t most)
{
    draft_tree_keep(t, 0, most);
    for (uint32_t i = 0; i < t->n; i++) {
        struct draft_node *node = &t->node[i];
        if (!node->kept)
            continue;
        node->from.confidence = node->p;
        const struct proposal draft = {.parent = node->parent < 0 ? 0 : t->node[node->parent].proposed,
                                       .token = node->token,
                                       .exit_layer = d->exit_layer,
                                       .prediction = &node->from,
                                       .q = DIST_NONE};
        if ((node->proposed = round_propose(d, &draft)) < 0)
            return false;
    }
    return true;
}
