/* Chat formats: how a model that was taught dialogues expects a user's turn to be written. A model says so in a Jinja
 * template; this looks for what is particular to the known ones instead of running it. */
#ifndef ENGINE_TOKENIZER_CHAT_H
#define ENGINE_TOKENIZER_CHAT_H

#include <time.h>

#include "engine/tokenizer/tokenizer.h"

enum chat_format {
    CHAT_NONE, /* no template, or one that isn't known */
    CHAT_LLAMA2,
    CHAT_LLAMA3,
    CHAT_VICUNA,
    CHAT_CHATML,
    CHAT_MISTRAL,
    CHAT_ZEPHYR,
    CHAT_FORMATS
};
extern const char *const chat_names[CHAT_FORMATS]; /* "Llama 2", … */

struct chat {
    enum chat_format format;
    char eos[32];                 /* the text that ends a turn, where the format has the model's own (Zephyr) */
    bool open_space, close_space; /* Mistral: "[INST] " and " [/INST]" rather than "[INST]" and "[/INST]" */
    bool system_tokens;           /* Mistral: the system's text stands between tokens of its own */
    char system[512];             /* what the template says when there is no system text; "" if nothing */
    char cutting[24];             /* Llama 3.1 and later, before the system text: the month to which the model knows */
    char date[16];                /* the world, "December 2023", and the date, "26 Jul 2024"; "": no such lines */
    bool today;                   /* the template wants the day's date; else it names one */
};

/* What the text of a template says. False: it isn't one that is known (*chat is CHAT_NONE then). */
bool chat_recognise(struct chat *, const char *template, size_t len);
/* The same of the template that came with a tokenizer. */
bool chat_of_tokenizer(struct chat *, const struct tokenizer *);
/* The day, where the template wants the day's date: both functions above set the local one of their call. */
void chat_set_day(struct chat *, const struct tm *);

/* A dialogue's first turn as text, up to where the model answers, without BOS; control tokens are written out. system may
 * be NULL: the template's own; and "": none. *text is memory that the caller frees, a NUL behind its *len bytes. */
bool chat_prompt(const struct chat *, const char *system, const char *user, size_t n_user, char **text, size_t *len,
                 struct err *);

#endif
