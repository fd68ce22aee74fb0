/* The pre-tokenizers that GGUF files name in tokenizer.ggml.pre, as the models' own tokenizers cut text (the patterns are
 * those of the models' tokenizer.json; the names llama.cpp's). */
#include "engine/tokenizer/pretokenizer_internal.h"

#include <string.h>

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"

#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define LLAMA3                                                                                                         \
    CONTRACTIONS                                                                                                       \
    "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define QWEN2                                                                                                          \
    CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
/* Qwen 3.5: marks belong to words. */
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
/* Words end where upper case follows lower. */
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
/* Kimi: as above, but what is Chinese are words of their own. */
#define NOT_HAN  "&&[^\\p{Han}]]"
#define K2_UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}" NOT_HAN
#define K2_LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}" NOT_HAN
#define KIMI_K2                                                                                                        \
    "[\\p{Han}]+|[^\\r\\n\\p{L}\\p{N}]?" K2_UPPER "*" K2_LOWER "+" CONTRACTIONS "?|[^\\r\\n\\p{L}\\p{N}]?" K2_UPPER    \
    "+" K2_LOWER "*" CONTRACTIONS "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
/* Letters that have case, as far as Unicode 11 knew them. */
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
    /* digits are looked for among the characters for bytes, as Falcon's own tokenizer does it */
    {.names = "falcon", .patterns = {"[\\p{P}!-/:-@\\[-`{-~]+", GPT2, PRE_BYTE_CHARS, "\\p{N}+", "[0-9][0-9][0-9]"}},
    /* of conversions from before there were names */
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
