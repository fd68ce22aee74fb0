/* The internal interfaces of the template engine: values and the state of a rendering, tokens, the syntax tree, the
 * parser, calls of builtins, and evaluation. Values are small and passed by copy; they point into the arena of their
 * rendering. Only a namespace, a generator and a loop are mutable. */
#pragma once

#include <stdarg.h>
#include <stdint.h>
#include <time.h>

#include "base/err.h"
#include "base/slice.h"

enum value_kind {
    VALUE_MISSING, /* no value: an argument that was not passed */
    VALUE_UNDEFINED,
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_FLOAT,
    VALUE_TEXT,
    VALUE_LIST, /* any sequence of enum list_kind */
    VALUE_DICT,
    VALUE_NAMESPACE, /* a dict that `set` can change */
    VALUE_MACRO,
    VALUE_METHOD,   /* bound to a value: "a".upper */
    VALUE_FUNCTION, /* range, raise_exception, … */
    VALUE_LOOP
};

struct list;
struct dict;
struct macro;
struct method;
struct builtin;
struct loop;

struct value {
    enum value_kind kind;
    bool markup; /* of a text that the filter `safe` returned: a text that is added to it is HTML-escaped */
    union {
        bool truth;
        int64_t whole;
        double real;
        struct slice text; /* UTF-8; for an undefined value: the error message for using it */
        struct list *list;
        struct dict *dict; /* also for a namespace */
        struct macro *macro;
        struct method *method;
        const struct builtin *function;
        struct loop *loop;
    };
};

enum list_kind { LIST_LIST, LIST_TUPLE, LIST_GENERATOR };

struct list {
    enum list_kind kind;
    size_t n, room;
    struct value *at; /* (n) */
    size_t taken;     /* generator: number of values already read */
};

struct entry {
    struct value key, value;
};

struct dict {
    size_t n, room;
    struct entry *at; /* (n) in insertion order */
};

static inline struct value
value_none(void)
{
    return (struct value){.kind = VALUE_NONE};
}

static inline struct value
value_bool(bool truth)
{
    return (struct value){.kind = VALUE_BOOL, .truth = truth};
}

static inline struct value
value_int(int64_t whole)
{
    return (struct value){.kind = VALUE_INT, .whole = whole};
}

static inline struct value
value_float(double real)
{
    return (struct value){.kind = VALUE_FLOAT, .real = real};
}

static inline struct value
value_text(struct slice text)
{
    return (struct value){.kind = VALUE_TEXT, .text = text};
}

static inline struct value
value_words(const char *words) /* must stay valid as long as the value */
{
    return value_text(slice_of(words));
}

static inline struct value
value_list(struct list *list)
{
    return (struct value){.kind = VALUE_LIST, .list = list};
}

static inline struct value
value_dict(struct dict *dict)
{
    return (struct value){.kind = VALUE_DICT, .dict = dict};
}

static inline bool
value_is_list(struct value v, enum list_kind kind)
{
    return v.kind == VALUE_LIST && v.list->kind == kind;
}

/* Convert a value to a number and return whether it is one. As in Python, a bool is a number. */
bool value_is_whole(struct value, int64_t *whole);
bool value_is_number(struct value, double *real);
/* Python's bool(). */
bool value_truth(struct value);
/* Python's name of the type: "str", "dict", "NoneType". */
const char *value_type(struct value);

/* The state of a rendering: bounds, memory, output, visible names and the error. */

/* The mark that precedes a control token in a message's text: two noncharacters, which Unicode excludes from
 * interchanged text. */
#define MARK_CODES(code) ((code) == 0xfdd0 || (code) == 0xfdd1)
#define MARK             "\xef\xb7\x90\xef\xb7\x91"

/* Memory that is freed all at once, so that values may share parts. */
struct arena { /* initialise with {.most = bytes} */
    struct arena_chunk *chunks;
    size_t used, most; /* bytes */
};
void arena_free(struct arena *);

struct binding {
    struct slice name;
    struct value value;
    struct binding *next;
};

struct scope { /* of an iteration, a macro call or a block; an `if` has no scope of its own */
    struct scope *outer;
    struct binding *first;
};

struct render {
    struct arena arena;
    struct scope *scope;
    const struct dict *given; /* the caller's variables */
    struct tm now;
    unsigned line;  /* current line of the template */
    unsigned depth; /* of nested calls */
    unsigned most_depth;
    uint64_t steps; /* steps left */
    bool (*cancelled)(void);
    bool guarded;       /* texts may contain marks (chat.c), which must not be escaped */
    size_t output;      /* maximum bytes of output */
    const char *failed; /* error message; NULL while the rendering has not failed */
    unsigned failed_line;
    bool stopped; /* a bound was exceeded; no code may catch this error */
};

/* Records the error message with the current line and returns false. Keeps the first error. */
bool render_fail(struct render *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Fails because an undefined value is used; the message is the value's text. */
bool render_fail_undefined(struct render *, struct value);
/* Charges n steps; returns false if too few are left. */
bool render_step(struct render *, size_t n);
/* Charges the steps of reading a text character by character. */
bool render_read(struct render *, struct slice);
/* Enters a nested call; returns false if the nesting is too deep. The caller leaves the call with r->depth--. */
bool render_enter(struct render *);

/* Returns n zero bytes from the arena; on failure the rendering fails and the result is NULL. */
void *render_memory(struct render *, size_t n);
/* Returns the array of n elements of `size` bytes at `at`, reallocated if it has no room for one more. On failure the
 * rendering fails and the result is NULL. */
void *render_grow(struct render *, void *at, size_t n, size_t *room, size_t size);
bool render_copy(struct render *, const char *bytes, size_t n, struct slice *out);

/* Returns a new list of n values, all VALUE_MISSING; NULL on failure. */
struct list *render_list(struct render *, enum list_kind, size_t n);
bool list_add(struct render *, struct list *, struct value);
/* Makes the tuple (a, b). */
bool render_pair(struct render *, struct value a, struct value b, struct value *out);
struct dict *render_dict(struct render *);
/* Returns the key's value; NULL if the dict does not have the key or the rendering has failed. */
struct value *dict_find(struct render *, const struct dict *, struct value key);
struct value *dict_find_name(struct render *, const struct dict *, struct slice name);
bool dict_put(struct render *, struct dict *, struct value key, struct value value);

/* ---- text buffers ---- */
struct buffer { /* initialise with {0} */
    char *at;
    size_t len, room;
};
bool buffer_add(struct render *, struct buffer *, struct slice);
bool buffer_add_words(struct render *, struct buffer *, const char *);
bool buffer_add_code(struct render *, struct buffer *, uint32_t code); /* a code point */
bool buffer_print(struct render *, struct buffer *, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Appends the text `times` times. */
bool buffer_fill(struct render *, struct buffer *, struct slice, size_t times);
static inline struct slice
buffer_text(const struct buffer *b)
{
    return (struct slice){b->len == 0 ? "" : b->at, b->len};
}

/* ---- names ---- */
struct scope *render_scope(struct render *, struct scope *outer);
/* Binds a name in the innermost scope. */
bool render_bind(struct render *, struct slice name, struct value);
/* Looks a name up in the scopes, innermost first, then in the caller's variables. *out is NULL if the name is not
 * found. Returns false if the search exceeds the bound of steps. */
bool render_find(struct render *, struct slice name, const struct value **out);

/* Texts as in Python's str: lengths and positions count characters (code points); an invalid byte counts as one. */

/* Returns the bytes of the first character of a text that is not empty; *code is U+FFFD if the UTF-8 is invalid. */
size_t text_character(struct slice, uint32_t *code);
size_t text_length(struct slice); /* characters */
/* Characters in [from, to). */
struct slice text_part(struct slice, size_t from, size_t to);

bool text_is_space(uint32_t code); /* str.isspace() */
enum text_side { TEXT_LEFT = 1, TEXT_RIGHT = 2, TEXT_BOTH = 3 };
/* Removes the characters in `what` from the given ends; white space if what.data is NULL. */
struct slice text_strip(struct slice, struct slice what, enum text_side);

/* Returns the first byte at or after `from` at which `what` occurs; SIZE_MAX if it does not. */
size_t text_find(struct slice, struct slice what, size_t from);
bool text_begins(struct slice, struct slice with);
bool text_ends(struct slice, struct slice with);

/* Converts the case of a text, including characters outside ASCII. Fails for a character whose conversion has several
 * characters or depends on its neighbours. */
enum text_case { CASE_UPPER, CASE_LOWER, CASE_TITLE, CASE_CAPITAL, CASE_WORDS /* jinja2's title */ };
bool text_to_case(struct render *, struct slice, enum text_case, struct slice *out);

/* Values as text: Python's str() and repr(), json.dumps() and json.loads(). */

/* Appends Python's str() of a value. Fails for kinds whose text would contain an address. */
bool value_write(struct render *, struct buffer *, struct value);
/* Converts a value to a text with str(). */
bool value_to_text(struct render *, struct value, struct value *out);
struct json_style {
    bool ascii, sorted;
    struct slice indent, item, key; /* indent.data NULL: write one line */
};
/* Writes a value that is nested in `level` others. */
bool value_write_json(struct render *, struct buffer *, struct value, const struct json_style *, size_t level);

/* Parses JSON to a value. Unlike cJSON it distinguishes 1 from 1.0, as Python does, and keeps all digits of integers.
 * If the text is not JSON the rendering fails; the message contains the line. */
bool value_read_json(struct render *, struct slice text, struct value *);

/* Python's operations on values: iteration, comparison, arithmetic, a.b, a[b] and a[b:c]. */

/* An operator's one or two characters as one number. */
#define SIGN(a)     (unsigned)(a)
#define SIGN2(a, b) ((unsigned)(a) << 8 | (unsigned)(b))
#define SIGN_IN     SIGN('i')
#define SIGN_NOT_IN SIGN('n')

/* ---- iteration: the values of a list, the characters of a text, the keys of a dict ---- */
struct walk {
    struct value whole;
    size_t at; /* index of the next value; in a text, byte offset */
};
/* Python's len(); returns false if the value has no length. */
bool value_length(struct value, size_t *n);
bool walk_begin(struct render *, struct value, struct walk *);
/* Returns false after the last value or if the rendering has failed. */
bool walk_next(struct render *, struct walk *, struct value *);
/* Python's list(): returns the remaining values in a new list; NULL on failure. */
struct list *walk_list(struct render *, struct value, enum list_kind);

/* ---- comparison ---- */
bool values_equal(struct render *, struct value, struct value);
/* Sets *order to -1, 0 or 1, or to 2 for a NaN. Fails for kinds without an order; `sign` is used in the message. */
bool values_order(struct render *, struct value, struct value, const char *sign, int *order);
/* Evaluates `a sign b`, where sign is a comparison operator. */
bool values_compare(struct render *, unsigned sign, struct value a, struct value b, bool *out);
bool value_contains(struct render *, struct value whole, struct value part, bool *contains);
/* Fails if the value cannot be the key of a dict. */
bool value_check_key(struct render *, struct value);

/* ---- arithmetic ---- */
bool operate(struct render *, unsigned sign, struct value, struct value, struct value *);
bool negate(struct render *, struct value, struct value *);

/* ---- parts of values ---- */
/* a.name and a[b] as in jinja2: the first looks for methods before items, the second for items before methods. */
bool attribute_of(struct render *, struct value, struct slice name, struct value *);
bool item_of(struct render *, struct value, struct value index, struct value *);
/* a[b:c:d]; an omitted part is VALUE_NONE. */
bool slice_of_value(struct render *, struct value, const struct value parts[3], struct value *);
/* Evaluates a filter's `attribute` argument for an item: a text with dots (item.a.b), a number, or VALUE_NONE for the
 * item itself. `otherwise`, if it is given, replaces an undefined part. */
bool attribute_path(struct render *, struct value item, struct value path, struct value otherwise, struct value *out);
bool value_undefined(struct render *, struct value *, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- tokens: data outside {{ }} and {% %}; names, literals and operators inside ---- */
enum token_type {
    TOKEN_END,
    TOKEN_DATA,
    TOKEN_PRINT_BEGIN, /* {{ */
    TOKEN_PRINT_END,
    TOKEN_BLOCK_BEGIN, /* {% */
    TOKEN_BLOCK_END,
    TOKEN_NAME,
    TOKEN_CONST, /* a string or a number */
    TOKEN_SIGN
};

struct token {
    enum token_type type;
    unsigned line;
    unsigned sign;
    struct slice text; /* the template's text; newlines are \n */
    struct value constant;
};

struct tokens {
    size_t n, room;
    struct token *at; /* (n), the last is TOKEN_END */
};

bool tokens_read(struct render *, struct slice source, struct tokens *);

/* ---- the tree ---- */
enum node_kind {
    /* expressions */
    NODE_CONST,     /* constant */
    NODE_NAME,      /* name */
    NODE_ATTRIBUTE, /* a.name */
    NODE_ITEM,      /* a[b] */
    NODE_SLICE,     /* the b of a NODE_ITEM: [a:b:c], each may be NULL */
    NODE_CALL,      /* a(list) */
    NODE_FILTER,    /* a|name(list); a is NULL for a block's text */
    NODE_TEST,      /* a is name(list) */
    NODE_ARGUMENT,  /* in an argument list: a, or name=a */
    NODE_NOT,
    NODE_NEGATIVE,
    NODE_AND,
    NODE_OR,
    NODE_BINARY,    /* a sign b */
    NODE_COMPARE,   /* a, then a list of NODE_OPERAND */
    NODE_OPERAND,   /* sign a */
    NODE_CONCAT,    /* list, joined by ~ */
    NODE_CONDITION, /* a if b else c; c may be NULL */
    NODE_LIST,      /* list */
    NODE_TUPLE,
    NODE_DICT, /* a list of NODE_PAIR */
    NODE_PAIR, /* a: b */
    /* statements */
    NODE_DATA,             /* constant */
    NODE_PRINT,            /* a */
    NODE_IF,               /* a, body, otherwise; each elif is a node in `list` with a and body */
    NODE_FOR,              /* a in b if c, body, otherwise */
    NODE_SET,              /* a = b */
    NODE_SET_BLOCK,        /* a = body, through the filters b, which may be NULL */
    NODE_NAMESPACE_TARGET, /* target of a set: b.name, where b is a NODE_NAME */
    NODE_MACRO,            /* name(list of NODE_PARAMETER) body */
    NODE_PARAMETER,        /* name=a; a may be NULL */
    NODE_FILTER_BLOCK,     /* body through the filters b, which may be NULL */
    NODE_BREAK,
    NODE_CONTINUE
};

struct node {
    enum node_kind kind;
    unsigned line, sign;
    struct slice name;
    struct value constant;
    struct node *a, *b, *c;
    struct node *list, *body, *otherwise; /* first node of each list */
    struct node *next;                    /* next node of the list */
};

/* Parses a template and returns its first statement; NULL for an empty template, or on failure, which sets r->failed.
 * The tree is in the arena of `r` and points into its tokens. */
struct node *parse_template(struct render *, struct slice source);

/* ---- shared by the parser's files; functions that return a node return NULL on failure ---- */
struct parser {
    struct render *r;
    const struct token *at;
    bool in_macro;
    unsigned loops; /* number of enclosing loops in the same macro */
};

struct node_list {
    struct node *first, *last;
};

struct node *parse_node(struct parser *, enum node_kind); /* returns a new node with the current line */
void node_add(struct node_list *, struct node *);
bool parser_fail(struct parser *, const char *what); /* appends ", not 'x'" with the current token */
bool parser_is(const struct parser *, const char *name);
bool parser_signs(const struct parser *, unsigned sign);
bool parser_skip(struct parser *, const char *name);
bool parser_skip_sign(struct parser *, unsigned sign);
bool parser_expect_sign(struct parser *, unsigned sign);
bool parser_expect_name(struct parser *, struct slice *name);

struct node *parse_expression(struct parser *);
/* What parse_tuple() accepts between commas. */
enum part {
    PART_EXPRESSION,
    PART_UNCONDITIONAL /* no `a if b` */,
    PART_TARGET,
    PART_SET_TARGET /* also an attribute of a namespace */
};
/* Parses an expression, or a tuple if commas follow. `end` is a name that ends the tuple, or NULL. In brackets the
 * tuple may be empty. */
struct node *parse_tuple(struct parser *, enum part, const char *end, bool brackets);
/* Parses a chain of filters applied to `of`; if that is NULL, to a block's text. */
struct node *parse_filters(struct parser *, struct node *of, bool begun);

/* Calls of macros, methods of values, functions, filters and tests. */

struct keyword {
    struct slice name;
    struct value value;
};

struct arguments {
    size_t n, n_keywords;
    struct value *at;         /* (n) by position */
    struct keyword *keywords; /* (n_keywords) */
};

#define MOST_PARAMETERS 4

struct call { /* the arguments of a builtin */
    struct render *r;
    int which;         /* the builtin's `which` */
    struct value self; /* the value to which the filter, test or method is applied */
    struct arguments given;
    struct value a[MOST_PARAMETERS]; /* by parameter; VALUE_MISSING if not passed */
};

struct builtin {
    const char *name;
    bool (*function)(struct call *, struct value *out);
    int which; /* distinguishes builtins that share a function */
    size_t required;
    const char *parameters[MOST_PARAMETERS]; /* "-x": positional only; "*": the function reads `given` */
};

struct macro {
    const struct node *node;
    struct scope *scope; /* the scope of its definition */
};

struct method {
    const struct builtin *builtin;
    struct value self;
};

/* Tables of builtins; the name of the last row is NULL. */
extern const struct builtin global_functions[]; /* range, dict, namespace, raise_exception, strftime_now */
extern const struct builtin method_filters[], value_filters[], list_filters[];

/* Returns the table's row of that name; NULL if there is none. */
const struct builtin *builtin_find(const struct builtin *, struct slice name);
/* Returns a value's method; NULL if there is none of that name, or if it is not supported. */
const struct builtin *method_find(struct value, struct slice name);

/* Calls a macro, a method or a function. */
bool value_call(struct render *, struct value, const struct arguments *, struct value *out);
bool filter_call(struct render *, struct slice name, struct value self, const struct arguments *, struct value *out);
bool test_call(struct render *, struct slice name, struct value self, const struct arguments *, bool *out);

/* ---- arguments of builtins ---- */
/* Reads argument i as an integer; *whole is unchanged if it was not passed. */
bool call_whole(struct call *, size_t i, int64_t *whole);
/* Reads argument i as a text; *text is unchanged if it was not passed or is None. */
bool call_text(struct call *, size_t i, struct slice *text);
/* Fails with "a int can't be `what`"; for an undefined value, with its own message. */
bool call_unfit(struct call *, const char *what);

/* Evaluation of expressions and execution of statements. */

/* Evaluates an expression. */
bool evaluate(struct render *, const struct node *, struct value *);
/* Evaluates a filter; if `text` is not NULL, the first filter of its chain is applied to that text of a block. */
bool evaluate_filter(struct render *, const struct node *, const struct value *text, struct value *);

/* How statements end: normally, by a break, by a continue, by an error. */
enum ending { ENDS_NORMALLY, ENDS_LOOP, ENDS_PASS, FAILS };
/* Executes statements and appends their text to `out`. */
enum ending execute(struct render *, const struct node *first, struct buffer *out);

/* Reads an attribute of `loop`; *known is false if it does not have the attribute. */
bool loop_attribute(struct render *, struct loop *, struct slice name, struct value *, bool *known);
