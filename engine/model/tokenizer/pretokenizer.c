/* Builds pre-tokenizers: their steps, the families that GGUF files name, and the translation of Oniguruma patterns to
 * PCRE2. */
#include "engine/model/tokenizer/pretokenizer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array_grow.h"
#include "base/utf8.h"

struct pretokenizer *
pretokenizer_new(void)
{
    struct pretokenizer *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->limits = pcre2_match_context_create(NULL);
    if (p->limits == NULL) {
        free(p);
        return NULL;
    }
    pcre2_set_match_limit(p->limits, MATCH_LIMIT);
    pcre2_set_heap_limit(p->limits, MATCH_HEAP_KIB);
    return p;
}

void
pretokenizer_free(struct pretokenizer *p)
{
    if (p == NULL)
        return;
    for (unsigned i = 0; i < p->n_steps; i++) {
        pcre2_code_free(p->steps[i].code);
        free(p->steps[i].text);
    }
    pcre2_match_context_free(p->limits);
    free(p);
}

static struct pre_step *
new_step(struct pretokenizer *p, enum pre_kind kind, struct err *err)
{
    if (p->n_steps == MOST_STEPS) {
        err_set(err, ERR_WORK, "a pre-tokenizer of more than %d steps is not supported", MOST_STEPS);
        return NULL;
    }
    p->steps[p->n_steps] = (struct pre_step){.kind = kind};
    return &p->steps[p->n_steps++];
}

bool
pretokenizer_add_split(struct pretokenizer *p, const char *pattern, size_t len, bool literal,
                       enum split_behavior behavior, bool invert, struct err *err)
{
    pcre2_code *code = pretokenizer_compile(pattern, len, literal, err);
    struct pre_step *step = code == NULL ? NULL : new_step(p, PRE_SPLIT, err);
    if (step == NULL) {
        pcre2_code_free(code);
        return false;
    }
    step->code = code;
    step->behavior = behavior;
    step->invert = invert;
    return true;
}

/* ---- the other steps ---- */

static bool
add_text_step(struct pretokenizer *p, enum pre_kind kind, const char *text, size_t len, bool only_first,
              struct err *err)
{
    bool split = false;
    unsigned added =
        0; /* by steps after a split: one pre-tokenizer adds a mark and a prefix; more could lengthen a text without limit */
    for (unsigned i = 0; i < p->n_steps; i++) {
        const enum pre_kind before = p->steps[i].kind;
        split = split || before == PRE_SPLIT;
        added += split && (before == PRE_PREFIX || before == PRE_SPACE_MARK);
        if (before == PRE_BYTES || added == 2)
            return err_set(err, ERR_WORK, "a pre-tokenizer that adds to words %s is not supported",
                           added == 2 ? "again" : "which it has turned into bytes");
    }
    if (!utf8_valid(text, len))
        return err_set(err, ERR_WORK, "a pre-tokenizer that adds broken UTF-8 is not supported");
    struct pre_step *step = new_step(p, kind, err);
    if (step == NULL)
        return false;
    step->only_first = only_first;
    step->n_text = len;
    step->text = malloc(len + 1);
    if (step->text == NULL)
        return err_set(err, ERR_WORK, "out of memory for a pre-tokenizer");
    memcpy(step->text, text, len);
    return true;
}

bool
pretokenizer_add_prefix(struct pretokenizer *p, const char *prefix, size_t len, bool only_first, struct err *err)
{
    return add_text_step(p, PRE_PREFIX, prefix, len, only_first, err);
}

bool
pretokenizer_add_space_mark(struct pretokenizer *p, const char *to, size_t len, struct err *err)
{
    return add_text_step(p, PRE_SPACE_MARK, to, len, false, err);
}

bool
pretokenizer_add_byte_chars(struct pretokenizer *p, struct err *err)
{
    if (p->byte_chars)
        return err_set(err, ERR_WORK, "a pre-tokenizer that writes bytes as characters twice is not supported");
    p->byte_chars = new_step(p, PRE_BYTES, err) != NULL;
    return p->byte_chars;
}

/* The pre-tokenizers that GGUF files name in tokenizer.ggml.pre. The patterns are from the models' tokenizer.json; the
 * names are llama.cpp's. */

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"

#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define LLAMA3                                                                                                         \
    CONTRACTIONS                                                                                                       \
    "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define QWEN2                                                                                                          \
    CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
/* Qwen 3.5: combining marks are part of words. */
#define QWEN35                                                                                                         \
    CONTRACTIONS                                                                                                       \
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| "                                                                  \
    "?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define SEED_CODER                                                                                                     \
    CONTRACTIONS                                                                                                       \
    "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define BAILING                                                                                                        \
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| "                                                    \
    "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"
#define BLOOM " ?[^(\\s|[.,!?…。，、।۔،])]+"
/* A word ends where upper case follows lower case. */
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define TEKKEN                                                                                                         \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER                                \
    "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define GPT4O                                                                                                          \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" CONTRACTIONS "?|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER               \
    "*" CONTRACTIONS "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

#define DEEPSEEK_V3                                                                                                    \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"                \
    "| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
/* Kimi: as above, but runs of Chinese characters are separate words. */
#define NOT_HAN  "&&[^\\p{Han}]]"
#define K2_UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}" NOT_HAN
#define K2_LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}" NOT_HAN
#define KIMI_K2                                                                                                        \
    "[\\p{Han}]+|[^\\r\\n\\p{L}\\p{N}]?" K2_UPPER "*" K2_LOWER "+" CONTRACTIONS "?|[^\\r\\n\\p{L}\\p{N}]?" K2_UPPER    \
    "+" K2_LOWER "*" CONTRACTIONS "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
/* Letters that have case in Unicode 11. */
#define CASED_LETTERS                                                                                                  \
    "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-\\x{293}"                    \
    "\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}\\x{386}\\x{388}-\\x{38A}"             \
    "\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}"                    \
    "\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}"                  \
    "\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}"                  \
    "\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}\\x{1F5D}"                             \
    "\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}"                            \
    "\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}"                  \
    "\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}"                    \
    "\\x{2126}\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}"                             \
    "\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}"                             \
    "\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}"                   \
    "\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}"                  \
    "\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}"                                 \
    "\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}\\x{118A0}-\\x{118DF}"                             \
    "\\x{1E900}-\\x{1E943}"
#define DEEPSEEK_PUNCTUATION "\\s?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+"
#define DEEPSEEK_CJK         "[\\x{4E00}-\\x{9FA5}\\x{0800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+"
#define SPACES_AT_END        "(?<!\\s)\\s++$" /* \s+$, without trying it at every space of a run */

const char pre_gpt2_pattern[] = GPT2;

static const struct pre_family families[] = {
    {.names = "llama3 llama-v3 llama-bpe falcon3 pixtral midm-2.0",
     .patterns = {LLAMA3},
     .whole_words = true,
     .bos = true},
    {.names = "smaug-bpe dbrx chatglm-bpe", .patterns = {LLAMA3}},
    {.names = "glm4", .patterns = {LLAMA3}, .whole_words = true},
    {.names = "qwen2 deepseek-r1-qwen stablelm2 megrez", .patterns = {QWEN2}, .nfc = true},
    {.names = "qwen35", .patterns = {QWEN35}, .nfc = true},
    {.names = "gpt-2 phi-2 roberta-bpe gigachat mellum jais trillion exaone4 a.x-4.0 granite-docling",
     .patterns = {GPT2}},
    {.names = "olmo mpt", .patterns = {GPT2}, .nfc = true},
    {.names = "starcoder refact smollm codeshell exaone minerva-7b", .patterns = {"\\p{N}", GPT2}},
    {.names = "command-r", .patterns = {"\\p{N}", GPT2}, .nfc = true},
    {.names = "deepseek-llm",
     .patterns = {"[\\r\\n]", "\\s?[" CASED_LETTERS "]+", DEEPSEEK_PUNCTUATION, SPACES_AT_END, DEEPSEEK_CJK, "\\p{N}"}},
    {.names = "deepseek-coder", .patterns = {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", DEEPSEEK_CJK, "\\p{N}"}},
    {.names = "deepseek-v3 hunyuan-dense joyai-llm",
     .patterns = {"\\p{N}{1,3}", "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+", DEEPSEEK_V3}},
    {.names = "seed-coder", .patterns = {SEED_CODER}},
    {.names = "bailingmoe bailingmoe2 llada-moe", .patterns = {BAILING}},
    {.names = "bloom poro-chat gpt3-finnish", .patterns = {BLOOM}},
    {.names = "viking", .patterns = {BLOOM, "\\p{N}"}},
    {.names = "kimi-k2", .patterns = {KIMI_K2}},
    {.names = "tiny_aya", .patterns = {"\\d{1,3}(?=(?:\\d{3})*\\b)", GPT4O}},
    {.names = "tekken", .patterns = {TEKKEN}, .whole_words = true, .bos = true},
    {.names = "gpt-4o llama4 kanana2 minimax-m2", .patterns = {GPT4O}},
    /* digits are matched after the conversion of bytes to characters, as in Falcon's own tokenizer */
    {.names = "falcon", .patterns = {"[\\p{P}!-/:-@\\[-`{-~]+", GPT2, PRE_BYTE_CHARS, "\\p{N}+", "[0-9][0-9][0-9]"}},
    /* for files converted before pre-tokenizers had names */
    {.names = "default", .patterns = {"[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}},
};

const struct pre_family *
pre_family_find(const char *name, size_t len)
{
    if (len == 0)
        return pre_family_find("default", 7);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        for (const char *at = families[i].names; *at != '\0';) {
            const size_t n = strcspn(at, " ");
            if (n == len && memcmp(at, name, n) == 0)
                return &families[i];
            at += n + (at[n] == ' ');
        }
    return NULL;
}

bool
pretokenizer_of_family(struct pretokenizer **out, const struct pre_family *family, struct err *err)
{
    struct pretokenizer *p = *out = pretokenizer_new();
    bool ok = p != NULL || err_set(err, ERR_WORK, "out of memory for a pre-tokenizer");
    for (const char *const *pattern = family->patterns; ok && *pattern != NULL; pattern++)
        ok = strcmp(*pattern, PRE_BYTE_CHARS) == 0
                 ? pretokenizer_add_byte_chars(p, err)
                 : pretokenizer_add_split(p, *pattern, strlen(*pattern), false, SPLIT_ISOLATED, false, err);
    if (!ok) {
        pretokenizer_free(p);
        *out = NULL;
    }
    return ok;
}

/* Translates Oniguruma patterns (Hugging Face's syntax) to PCRE2 in UTF and UCP mode. The two differ in the definitions
 * of white space and word characters, which the translation writes out, and in nested classes such as [a[^b]] and
 * [\p{L}&&[^\p{Han}]], which become alternatives and assertions of single characters. */

/* Unicode's White_Space; PCRE2's \s also contains U+180E. */
#define WHITE_SPACE "\\p{Z}\\t-\\r\\x{85}"
/* Word characters: letters (including those in circles and squares), marks, digits and connectors. Outside classes WORD
 * also contains Latin-1's other numbers. */
#define IN_WORDS                                                                                                       \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{"    \
    "1F189}"
#define WORD         IN_WORDS "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}"
#define WORD_AHEAD   "(?=[" WORD "])"
#define NO_WORD      "(?![" WORD "])"
#define WORD_BEHIND  "(?<=[" WORD "])"
#define NONE_BEHIND  "(?<![" WORD "])"
#define MOST_NESTED  16
#define MOST_WRITTEN (16 * LONGEST_PATTERN) /* bytes */

struct text {
    char *at;
    size_t len, room;
};

struct translation {
    const char *pattern;
    size_t at, len;
    const char *why; /* reason why it cannot be translated; NULL: out of memory */
};

static bool
put_bytes(struct text *t, const char *bytes, size_t n)
{
    if (t->len + n > MOST_WRITTEN || !array_grow(&t->at, &t->room, t->len + n, 1))
        return false;
    if (n > 0)
        memcpy(t->at + t->len, bytes, n);
    t->len += n;
    return true;
}

static bool
put(struct text *t, const char *bytes)
{
    return put_bytes(t, bytes, strlen(bytes));
}

static bool
put_text(struct text *t, const struct text *other)
{
    return put_bytes(t, other->at, other->len);
}

static bool
refuse(struct translation *p, const char *why)
{
    p->why = why;
    return false;
}

static char
ahead(const struct translation *p, size_t by)
{
    return p->at + by < p->len ? p->pattern[p->at + by] : '\0';
}

/* ---- escapes ---- */

/* Returns whether a property is a script. Since PCRE2 10.40 \p{Han} includes script extensions, for example 。;
 * \p{sc:Han} is equal to Oniguruma's \p{Han}. */
static bool
is_script(const char *name, size_t n)
{
    static const char *const scripts[] = {
        "Han",      "Hiragana", "Katakana", "Hangul",   "Bopomofo", "Latin",      "Greek",    "Cyrillic",
        "Armenian", "Hebrew",   "Arabic",   "Syriac",   "Thaana",   "Devanagari", "Bengali",  "Gurmukhi",
        "Gujarati", "Oriya",    "Tamil",    "Telugu",   "Kannada",  "Malayalam",  "Sinhala",  "Thai",
        "Lao",      "Tibetan",  "Myanmar",  "Georgian", "Ethiopic", "Khmer",      "Mongolian"};
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (strlen(scripts[i]) == n && strncasecmp(name, scripts[i], n) == 0)
            return PCRE2_MAJOR > 10 || PCRE2_MINOR >= 40;
    return false;
}

/* Translates an escape sequence. */
static bool
put_escape(struct translation *p, struct text *out)
{
    const size_t left = p->len - p->at;
    const char *at = left > 3 ? p->pattern + p->at + 3 : NULL, *end = at != NULL ? memchr(at, '}', left - 3) : NULL;
    const bool not = end != NULL && *at == '^';
    if ((ahead(p, 1) == 'p' || ahead(p, 1) == 'P') && ahead(p, 2) == '{' && end != NULL &&
        is_script(at + not, (size_t)(end - at) - not )) {
        const bool ok = put_bytes(out, p->pattern + p->at, (size_t)3 + not ) && put(out, "sc:") &&
                        put_bytes(out, at + not, (size_t)(end + 1 - at) - not );
        p->at = (size_t)(end + 1 - p->pattern);
        return ok;
    }
    p->at += 2;
    return put_bytes(out, p->pattern + p->at - 2, 2);
}

/* ---- classes ---- */

/* An operand of &&: items that PCRE2 accepts in one class, and classes that need alternatives. */
struct operand {
    struct text plain, others; /* others: each preceded by | */
    bool after_class;          /* a - here is a literal */
};

static void
free_operand(struct operand *o)
{
    free(o->plain.at);
    free(o->others.at);
    *o = (struct operand){0};
}

/* Writes a pattern that matches one character of the operand. */
static bool
put_operand(struct text *out, const struct operand *o)
{
    if (o->others.len == 0)
        return put(out, "[") && put_text(out, &o->plain) && put(out, "]");
    if (!put(out, "(?>")) /* atomic: every alternative matches one character, so backtracking cannot help */
        return false;
    if (o->plain.len > 0)
        return put(out, "[") && put_text(out, &o->plain) && put(out, "]") && put_text(out, &o->others) && put(out, ")");
    return put_bytes(out, o->others.at + 1, o->others.len - 1) && put(out, ")");
}

/* Escapes a - at the end of the plain items: no character follows, so it does not form a range. */
static bool
end_plain(struct text *plain)
{
    size_t n = plain->len, slashes = 0;
    if (n == 0 || plain->at[n - 1] != '-')
        return true;
    while (slashes + 1 < n && plain->at[n - 2 - slashes] == '\\')
        slashes++;
    if (slashes % 2 == 1)
        return true;
    plain->len--;
    return put(plain, "\\-");
}

static bool read_class(struct translation *, int depth, struct text *out);

static bool
read_nested(struct translation *p, int depth, struct operand *o)
{
    p->at++;
    o->after_class = true;
    return end_plain(&o->plain) && put(&o->others, "|") && read_class(p, depth + 1, &o->others);
}

/* Reads a POSIX class such as [:alpha:]. */
static bool
read_posix(struct translation *p, struct operand *o)
{
    size_t n = 2;
    while (p->at + n < p->len && p->pattern[p->at + n] != ']')
        n++;
    if (p->at + n == p->len)
        return refuse(p, "a character class does not end");
    const bool ok = put_bytes(&o->plain, p->pattern + p->at, n + 1);
    p->at += n + 1;
    return ok;
}

static bool
read_item(struct translation *p, struct operand *o)
{
    const char c = ahead(p, 0), next = ahead(p, 1);
    const bool after_class = o->after_class, first = o->plain.len == 0;
    o->after_class = false;
    if (c == '\\' && (next == 's' || next == 'w')) {
        p->at += 2;
        return put(&o->plain, next == 's' ? WHITE_SPACE : IN_WORDS);
    }
    if (c == '\\' && (next == 'S' || next == 'W')) {
        p->at += 2;
        o->after_class = true;
        return put(&o->others, next == 'S' ? "|[^" WHITE_SPACE "]" : "|[^" IN_WORDS "]");
    }
    if (c == '\\' && p->at + 1 < p->len)
        return put_escape(p, &o->plain);
    p->at++;
    if ((c == '-' && (first || after_class)) || (c == '^' && first) || c == ']' || c == '[')
        return put(&o->plain, "\\") && put_bytes(&o->plain, &c, 1);
    return put_bytes(&o->plain, &c, 1);
}

/* Reads the operands up to and including the ]. All but the last are written: the first to *taken, an assertion for
 * each further one to *asserted. */
static bool
read_operands(struct translation *p, int depth, struct operand *last, struct text *taken, struct text *asserted)
{
    const size_t begin = p->at;
    bool ok = true;
    while (ok && (ahead(p, 0) != ']' || p->at == begin)) {
        if (p->at >= p->len) {
            ok = refuse(p, "a character class does not end");
        } else if (ahead(p, 0) == '[' && ahead(p, 1) == ':') {
            ok = read_posix(p, last);
        } else if (ahead(p, 0) == '[') {
            ok = read_nested(p, depth, last);
        } else if (ahead(p, 0) == '&' && ahead(p, 1) == '&') {
            p->at += 2;
            ok = end_plain(&last->plain) &&
                 (taken->len == 0 ? put_operand(taken, last)
                                  : put(asserted, "(?=") && put_operand(asserted, last) && put(asserted, ")"));
            free_operand(last);
        } else {
            ok = read_item(p, last);
        }
    }
    p->at++;
    return ok;
}

/* Reads a class after its [ up to and including its ], and writes a pattern that matches one character of it. */
static bool
read_class(struct translation *p, int depth, struct text *out)
{
    struct operand last = {0};
    struct text taken = {0}, asserted = {0};
    const bool negated = ahead(p, 0) == '^';
    if (depth == MOST_NESTED)
        return refuse(p, "classes within classes that go too deep");
    p->at += negated;
    bool ok = read_operands(p, depth, &last, &taken, &asserted);
    if (ok && last.plain.len + last.others.len == 0)
        ok = refuse(p, "an empty character class");
    else if (ok && taken.len + last.others.len == 0)
        ok = put(out, negated ? "[^" : "[") && put_text(out, &last.plain) && put(out, "]");
    else if (ok)
        ok = put(out, negated ? "(?:(?!" : "(?:") && put_text(out, &asserted) && (taken.len == 0 || put(out, "(?=")) &&
             put_operand(out, &last) && (taken.len == 0 || put(out, ")")) && put_text(out, &taken) &&
             put(out, negated ? ")(?s:.))" : ")");
    free_operand(&last);
    free(taken.at);
    free(asserted.at);
    return ok;
}

/* ---- the whole pattern ---- */

/* Returns the translation of an escaped letter outside classes; NULL if PCRE2 interprets it in the same way. */
static const char *
meaning(char letter)
{
    switch (letter) {
    case 's': return "[" WHITE_SPACE "]";
    case 'S': return "[^" WHITE_SPACE "]";
    case 'w': return "[" WORD "]";
    case 'W': return "[^" WORD "]";
    case 'b': return "(?:" WORD_BEHIND NO_WORD "|" NONE_BEHIND WORD_AHEAD ")";
    case 'B': return "(?:" WORD_BEHIND WORD_AHEAD "|" NONE_BEHIND NO_WORD ")";
    default: return NULL;
    }
}

static bool
translate(struct translation *p, struct text *out)
{
    bool ok = true;
    while (ok && p->at < p->len) {
        const char c = ahead(p, 0), next = ahead(p, 1);
        if (c == '\\' && meaning(next) != NULL) {
            ok = put(out, meaning(next));
            p->at += 2;
        } else if (c == '\\' && p->at + 1 < p->len) {
            ok = put_escape(p, out);
        } else if (c == '[') {
            p->at++;
            ok = read_class(p, 0, out);
        } else {
            ok = put_bytes(out, &c, 1);
            p->at++;
        }
    }
    return ok;
}

pcre2_code *
pretokenizer_compile(const char *pattern, size_t len, bool literal, struct err *err)
{
    char shown[120], message[160];
    struct text written = {0};
    struct translation p = {.pattern = pattern, .len = len};
    pcre2_code *code = NULL;
    int number;
    PCRE2_SIZE place;
    printable_line(shown, sizeof shown, pattern, len);
    if (len > LONGEST_PATTERN || len == 0) {
        err_set(err, ERR_WORK, "a pattern of %zu bytes is not supported", len);
        return NULL;
    }
    if (literal ? !put_bytes(&written, pattern, len) : !translate(&p, &written)) {
        if (p.why != NULL)
            err_set(err, ERR_WORK, "%s is not supported: '%s'", p.why, shown);
        else
            err_set(err, ERR_WORK, "out of memory for the pattern '%s'", shown);
        free(written.at);
        return NULL;
    }
    const uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C);
    code = pcre2_compile((PCRE2_SPTR)written.at, written.len, options, &number, &place, NULL);
    if (code == NULL) {
        pcre2_get_error_message(number, (PCRE2_UCHAR *)message, sizeof message);
        err_set(err, ERR_WORK, "the pattern '%s' cannot be used: %s", shown, message);
    } else {
        pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* a failure only makes matching slower */
    }
    free(written.at);
    return code;
}
