/* Which names a scope begins without. */
#include "engine/chat/template.h"

struct frame { /* a scope, as far as it is read */
    struct frame *outer;
    struct name *known; /* read or set in it */
    struct name *unset;
};

static bool
is_among(struct render *r, const struct name *list, struct slice name)
{
    size_t visited = 0;
    for (; list != NULL && slice_compare(list->name, name) != 0; list = list->next)
        visited += 1 + name.len / 64;
    return render_step(r, visited / 8) && list != NULL;
}

static bool
is_known(struct render *r, const struct frame *f, struct slice name)
{
    for (; f != NULL; f = f->outer)
        if (is_among(r, f->known, name))
            return true;
    return false;
}

static bool
add(struct render *r, struct name **list, struct slice name)
{
    struct name *n = r->failed != NULL ? NULL : render_memory(r, sizeof *n);
    if (n == NULL)
        return false;
    *n = (struct name){name, *list};
    *list = n;
    return true;
}

/* The names that an expression reads. */
static bool
read_names(struct render *r, struct frame *f, const struct node *n)
{
    if (n == NULL)
        return true;
    if (n->kind == NODE_NAME)
        return is_known(r, f, n->name) || add(r, &f->known, n->name);
    if (!render_enter(r))
        return false;
    bool ok = read_names(r, f, n->a) && read_names(r, f, n->b) && read_names(r, f, n->c);
    for (const struct node *i = n->list; i != NULL && ok; i = i->next)
        ok = read_names(r, f, i);
    r->depth--;
    return ok;
}

/* In a branch the name may stay unset, so that its value from before counts. */
static bool
set_name(struct render *r, struct frame *f, struct slice name, bool branch)
{
    if (is_among(r, f->known, name))
        return true;
    if (!branch && !is_known(r, f->outer, name) && !add(r, &f->unset, name))
        return false;
    return add(r, &f->known, name);
}

static bool
set_names(struct render *r, struct frame *f, const struct node *target, bool branch)
{
    if (target->kind == NODE_NAMESPACE_TARGET)
        return read_names(r, f, target->b);
    for (const struct node *part = target->list; part != NULL; part = part->next)
        if (!set_names(r, f, part, branch))
            return false;
    return target->kind != NODE_NAME || set_name(r, f, target->name, branch);
}

static bool
add_parameters(struct render *r, struct frame *f, const struct node *list)
{
    for (const struct node *p = list; p != NULL; p = p->next)
        if (!read_names(r, f, p->a) || !add(r, &f->known, p->name))
            return false;
    return true;
}

static bool
add_targets(struct render *r, struct frame *f, const struct node *target)
{
    for (const struct node *part = target->list; part != NULL; part = part->next)
        if (!add_targets(r, f, part))
            return false;
    return target->kind != NODE_NAME || add(r, &f->known, target->name);
}

/* The scope's own statements in their order, without those of scopes in it. */
static bool
read_statements(struct render *r, struct frame *f, const struct node *n, bool branch)
{
    bool ok = true;
    for (; n != NULL && ok; n = n->next)
        switch (n->kind) {
        case NODE_PRINT: ok = read_names(r, f, n->a); break;
        case NODE_IF:
            ok = read_names(r, f, n->a) && read_statements(r, f, n->body, true) &&
                 read_statements(r, f, n->list, true) && read_statements(r, f, n->otherwise, true);
            break;
        case NODE_FILTER_BLOCK:
        case NODE_FOR: ok = read_names(r, f, n->b); break;
        case NODE_SET: ok = read_names(r, f, n->b) && set_names(r, f, n->a, branch); break;
        case NODE_SET_BLOCK: ok = set_names(r, f, n->a, branch); break;
        case NODE_MACRO: ok = set_name(r, f, n->name, branch); break;
        default: break;
        }
    return ok;
}

static bool settle_inner(struct render *, struct frame *, struct node *);

/* Settles a scope with that body; *unset has the names that it begins without. */
static bool
settle_body(struct render *r, struct frame *f, struct node *body, struct name **unset)
{
    if (!read_statements(r, f, body, false) || !settle_inner(r, f, body))
        return false;
    *unset = f->unset;
    return true;
}

static bool
settle_node(struct render *r, struct frame *outer, struct node *n)
{
    struct frame f = {.outer = outer}, otherwise = {.outer = outer};
    switch (n->kind) {
    case NODE_IF:
        return settle_inner(r, outer, n->body) && settle_inner(r, outer, n->list) &&
               settle_inner(r, outer, n->otherwise);
    case NODE_FOR:
        return add(r, &f.known, slice_of("loop")) && add_targets(r, &f, n->a) &&
               settle_body(r, &f, n->body, &n->unset) && settle_body(r, &otherwise, n->otherwise, &n->unset_otherwise);
    case NODE_MACRO: return add_parameters(r, &f, n->list) && settle_body(r, &f, n->body, &n->unset);
    case NODE_FILTER_BLOCK: return read_names(r, &f, n->b) && settle_body(r, &f, n->body, &n->unset);
    case NODE_SET_BLOCK: return settle_body(r, &f, n->body, &n->unset);
    default: return true;
    }
}

/* The scopes that begin in these statements. */
static bool
settle_inner(struct render *r, struct frame *f, struct node *n)
{
    for (; n != NULL; n = n->next)
        if (!settle_node(r, f, n))
            return false;
    return true;
}

bool
names_settle(struct render *r, struct node *first, struct name **root)
{
    return settle_body(r, &(struct frame){0}, first, root);
}
