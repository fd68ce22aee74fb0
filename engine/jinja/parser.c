/* Parses tokens to statements. As in jinja2, an unknown statement is an error even if it would not be executed. */
#include "engine/jinja/template.h"

#define MOST_WITHIN 100 /* nested statements */

static struct node *parse_statement(struct parser *);

void
node_add(struct node_list *list, struct node *node)
{
    if (list->first == NULL)
        list->first = node;
    else
        list->last->next = node;
    list->last = node;
}

struct node *
parse_node(struct parser *p, enum node_kind kind)
{
    struct node *n = render_memory(p->r, sizeof *n);
    p->r->line = p->at->line;
    if (n != NULL)
        *n = (struct node){.kind = kind, .line = p->at->line};
    return n;
}

bool
parser_fail(struct parser *p, const char *what)
{
    const struct token *t = p->at;
    p->r->line = t->line;
    if (t->type == TOKEN_END)
        return render_fail(p->r, "%s, not the template's end", what);
    return render_fail(p->r, "%s, not '%.*s'", what, (int)t->text.len, t->text.data);
}

bool
parser_is(const struct parser *p, const char *name)
{
    return p->at->type == TOKEN_NAME && slice_is(p->at->text, name);
}

bool
parser_skip(struct parser *p, const char *name)
{
    const bool is = parser_is(p, name);
    p->at += is;
    return is;
}

bool
parser_signs(const struct parser *p, unsigned sign)
{
    return p->at->type == TOKEN_SIGN && p->at->sign == sign;
}

bool
parser_skip_sign(struct parser *p, unsigned sign)
{
    const bool is = parser_signs(p, sign);
    p->at += is;
    return is;
}

bool
parser_expect_sign(struct parser *p, unsigned sign)
{
    const char what[] = {'\'', (char)sign, '\'', ' ', 'i', 's', ' ', 'e', 'x', 'p', 'e', 'c', 't', 'e', 'd', '\0'};
    return parser_skip_sign(p, sign) || parser_fail(p, what);
}

bool
parser_expect_name(struct parser *p, struct slice *name)
{
    if (p->at->type != TOKEN_NAME)
        return parser_fail(p, "a name is expected");
    *name = p->at++->text;
    return true;
}

/* Parses statements up to a block tag that begins with one of these names, which is not skipped; if all are NULL, up to
 * the template's end. */
static bool
parse_body(struct parser *p, const char *const ends[3], struct node **first)
{
    struct node_list list = {0};
    if (!render_enter(p->r))
        return false;
    while (p->at->type != TOKEN_END) {
        const struct token *t = p->at;
        struct node *n = NULL;
        if (t->type == TOKEN_DATA) {
            if ((n = parse_node(p, NODE_DATA)) != NULL)
                n->constant = value_text(t->text);
            p->at++;
        } else if (t->type == TOKEN_PRINT_BEGIN) {
            n = parse_node(p, NODE_PRINT);
            p->at++;
            if (n == NULL || (n->a = parse_tuple(p, PART_EXPRESSION, NULL, false)) == NULL)
                return false;
            if (p->at->type != TOKEN_PRINT_END)
                return parser_fail(p, "}} is expected");
            p->at++;
        } else {
            p->at++; /* {% */
            for (int i = 0; i < 3 && ends[i] != NULL; i++)
                if (parser_is(p, ends[i])) {
                    *first = list.first;
                    p->r->depth--;
                    return true;
                }
            n = parse_statement(p);
            if (n != NULL && p->at->type != TOKEN_BLOCK_END)
                return parser_fail(p, "%} is expected");
            p->at++;
        }
        if (n == NULL)
            return false;
        node_add(&list, n);
    }
    *first = list.first;
    p->r->depth--;
    p->r->line = p->at->line;
    return ends[0] == NULL || render_fail(p->r, "{%% %s %%} is missing", ends[0]);
}

/* Parses the %} of a statement, then its body. */
static bool
parse_block(struct parser *p, const char *const ends[3], struct node **first)
{
    parser_skip_sign(p, SIGN(':'));
    if (p->at->type != TOKEN_BLOCK_END)
        return parser_fail(p, "%} is expected");
    p->at++;
    return parse_body(p, ends, first);
}

static bool
parse_block_to(struct parser *p, const char *end, struct node **first)
{
    const char *const ends[3] = {end};
    if (!parse_block(p, ends, first))
        return false;
    p->at++;
    return true;
}

static struct node *
parse_if(struct parser *p)
{
    static const char *const ends[3] = {"endif", "elif", "else"};
    struct node *n = parse_node(p, NODE_IF);
    struct node_list further = {0};
    p->at++;
    if (n == NULL || (n->a = parse_tuple(p, PART_UNCONDITIONAL, NULL, false)) == NULL ||
        !parse_block(p, ends, &n->body))
        return NULL;
    while (parser_skip(p, "elif")) {
        struct node *branch = parse_node(p, NODE_IF);
        if (branch == NULL || (branch->a = parse_tuple(p, PART_UNCONDITIONAL, NULL, false)) == NULL ||
            !parse_block(p, ends, &branch->body))
            return NULL;
        node_add(&further, branch);
    }
    n->list = further.first;
    if (parser_skip(p, "else"))
        return parse_block_to(p, "endif", &n->otherwise) ? n : NULL;
    p->at++;
    return n;
}

static struct node *
parse_for(struct parser *p)
{
    static const char *const ends[3] = {"endfor", "else"};
    struct node *n = parse_node(p, NODE_FOR);
    p->at++;
    if (n == NULL || (n->a = parse_tuple(p, PART_TARGET, "in", false)) == NULL)
        return NULL;
    if (!parser_skip(p, "in")) {
        parser_fail(p, "'in' is expected");
        return NULL;
    }
    if ((n->b = parse_tuple(p, PART_UNCONDITIONAL, "recursive", false)) == NULL)
        return NULL;
    if (parser_skip(p, "if") && (n->c = parse_expression(p)) == NULL)
        return NULL;
    if (parser_is(p, "recursive")) {
        render_fail(p->r, "a recursive loop is not supported");
        return NULL;
    }
    p->loops++;
    const bool ok = parse_block(p, ends, &n->body);
    p->loops--;
    if (!ok)
        return NULL;
    if (parser_skip(p, "else"))
        return parse_block_to(p, "endfor", &n->otherwise) ? n : NULL;
    p->at++;
    return n;
}

static struct node *
parse_set(struct parser *p)
{
    struct node *n = parse_node(p, NODE_SET);
    p->at++;
    if (n == NULL || (n->a = parse_tuple(p, PART_SET_TARGET, NULL, false)) == NULL)
        return NULL;
    if (parser_skip_sign(p, SIGN('=')))
        return (n->b = parse_tuple(p, PART_EXPRESSION, NULL, false)) != NULL ? n : NULL;
    n->kind = NODE_SET_BLOCK;
    if (parser_signs(p, SIGN('|')) && (n->b = parse_filters(p, NULL, false)) == NULL)
        return NULL;
    return parse_block_to(p, "endset", &n->body) ? n : NULL;
}

static bool
parse_parameters(struct parser *p, struct node **first)
{
    struct node_list list = {0};
    bool defaults = false;
    if (!parser_expect_sign(p, SIGN('(')))
        return false;
    while (!parser_signs(p, SIGN(')'))) {
        if (list.first != NULL && !parser_expect_sign(p, SIGN(',')))
            return false;
        struct node *n = parse_node(p, NODE_PARAMETER);
        if (n == NULL || !parser_expect_name(p, &n->name))
            return false;
        if (parser_skip_sign(p, SIGN('='))) {
            defaults = true;
            if ((n->a = parse_expression(p)) == NULL)
                return false;
        } else if (defaults)
            return parser_fail(p, "a parameter without a default follows one with a default");
        node_add(&list, n);
    }
    *first = list.first;
    return parser_expect_sign(p, SIGN(')'));
}

static struct node *
parse_macro(struct parser *p)
{
    const struct parser outer = *p;
    struct node *n = parse_node(p, NODE_MACRO);
    p->at++;
    p->in_macro = true;
    p->loops = 0;
    if (n == NULL || !parser_expect_name(p, &n->name) || !parse_parameters(p, &n->list) ||
        !parse_block_to(p, "endmacro", &n->body))
        return NULL;
    p->in_macro = outer.in_macro;
    p->loops = outer.loops;
    return n;
}

/* Parses {% filter … %} and {% generation %}; the latter outputs its body unchanged. */
static struct node *
parse_filter_block(struct parser *p)
{
    const bool filters = parser_is(p, "filter");
    const unsigned loops = p->loops;
    struct node *n = parse_node(p, NODE_FILTER_BLOCK);
    p->at++;
    if (n == NULL || (filters && (n->b = parse_filters(p, NULL, true)) == NULL))
        return NULL;
    p->loops = filters ? loops : 0;
    if (!parse_block_to(p, filters ? "endfilter" : "endgeneration", &n->body))
        return NULL;
    p->loops = loops;
    return n;
}

static struct node *
parse_jump(struct parser *p)
{
    struct node *n = parse_node(p, parser_is(p, "break") ? NODE_BREAK : NODE_CONTINUE);
    p->at++;
    if (p->loops > 0)
        return n;
    render_fail(p->r, "break and continue belong into a loop");
    return NULL;
}

static struct node *
parse_statement(struct parser *p)
{
    static const struct {
        const char *name;
        struct node *(*parse)(struct parser *);
    } statements[] = {{"if", parse_if},
                      {"for", parse_for},
                      {"set", parse_set},
                      {"macro", parse_macro},
                      {"filter", parse_filter_block},
                      {"generation", parse_filter_block},
                      {"break", parse_jump},
                      {"continue", parse_jump}};
    if (p->at->type == TOKEN_NAME)
        for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
            if (parser_is(p, statements[i].name))
                return statements[i].parse(p);
    p->r->line = p->at->line;
    if (p->at->type == TOKEN_NAME)
        render_fail(p->r, "the statement '%.*s' is not supported", (int)p->at->text.len, p->at->text.data);
    else
        parser_fail(p, "a statement's name is expected");
    return NULL;
}

struct node *
parse_template(struct render *r, struct slice source)
{
    static const char *const ends[3] = {NULL};
    struct tokens tokens;
    struct node *first = NULL;
    const unsigned most = r->most_depth;
    if (!tokens_read(r, source, &tokens))
        return NULL;
    struct parser p = {.r = r, .at = tokens.at};
    r->most_depth = MOST_WITHIN < most ? MOST_WITHIN : most;
    const bool ok = parse_body(&p, ends, &first);
    r->most_depth = most;
    r->depth = 0;
    return ok ? first : NULL;
}
