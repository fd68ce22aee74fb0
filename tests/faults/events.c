#include "tests/faults/events.h"

#include <stdio.h>
#include <string.h>

#include "base/rng.h"

static unsigned
below(uint64_t *rng, unsigned n)
{
    return (unsigned)(splitmix64(rng) % n);
}

#define PICK(rng, list) (list)[below(rng, sizeof(list) / sizeof *(list))]

static size_t
text_event(char *out, const char *text)
{
    const size_t n = strlen(text);
    memcpy(out, text, n);
    return n;
}

static size_t
bound_key(uint64_t *rng, char *out)
{
    static const char keys[] = "?  nn..][rpFPHuUwbxe<>123456789\t}{z/Nmm'Mt:qcvgdhysa\r\r\033\x7f\x0c\x0a";
    out[0] = PICK(rng, keys);
    return out[0] != '\0';
}

static size_t
named_key(uint64_t *rng, char *out)
{
    static const char *const keys[] = {
        "\033[A",    "\033[B",    "\033[C",    "\033[D",    "\033OA",    "\033OB",  "\033OC",  "\033OD",  "\033[5~",
        "\033[6~",   "\033[H",    "\033[F",    "\033[1~",   "\033[4~",   "\033[3~", "\033[2~", "\033[Z",  "\033OP",
        "\033[1;2A", "\033[1;2B", "\033[1;2C", "\033[1;2D", "\033[1;5C", "\033OQ",  "\033OR",  "\033[24~"};
    return text_event(out, PICK(rng, keys));
}

/* Writes a press, drag, release or turn of the wheel, sometimes outside the terminal. */
static size_t
mouse(uint64_t *rng, unsigned cols, unsigned rows, char *out)
{
    static const unsigned buttons[] = {0, 0, 0, 1, 2, 32, 32, 35, 64, 65, 4, 16, 68, 255};
    const unsigned x = 1 + below(rng, cols + 3), y = 1 + below(rng, rows + 3), button = PICK(rng, buttons);
    if (below(rng, 20) == 0) /* in the encoding of older terminals */
        return (size_t)snprintf(out, EVENT_BYTES, "\033[M%c%c%c", (int)(' ' + button % 90), (int)(' ' + x % 90),
                                (int)(' ' + y % 90));
    return (size_t)snprintf(out, EVENT_BYTES, "\033[<%u;%u;%u%c", button, x, y, below(rng, 3) == 0 ? 'm' : 'M');
}

static const char *const commands[] = {"set tau 0.3",
                                       "set gamma 99",
                                       "set exit_layer 2",
                                       "policy layerskip",
                                       "policy sd",
                                       "policy ar",
                                       "policy nothing",
                                       "probe policy",
                                       "probe all",
                                       "head lens",
                                       "head other",
                                       "theme light",
                                       "theme mono",
                                       "theme nowhere",
                                       "panel layers",
                                       "panel knobs",
                                       "panel 7",
                                       "step 3",
                                       "goto 2",
                                       "goto 99999",
                                       "until reject",
                                       "until round 9",
                                       "resume",
                                       "pause",
                                       "restart",
                                       "prompt Three mice",
                                       "next",
                                       "extend 5",
                                       "baseline",
                                       "what-if on",
                                       "what-if off",
                                       "sequence next",
                                       "sequence 3",
                                       "speed faster",
                                       "speed slower",
                                       "search the",
                                       "note a word",
                                       "preset save mine",
                                       "preset mine",
                                       "versus layerskip",
                                       "versus off",
                                       "sweep tau=0.3:0.9:0.3",
                                       "sweep",
                                       "zoom",
                                       "export trace-out",
                                       "save-screen s.txt",
                                       "save-screen s.svg",
                                       "plot exits x.svg",
                                       "undo",
                                       "redo",
                                       "wait idle",
                                       "key Tab S-Left q",
                                       "set",
                                       "temp 0.7",
                                       "set temp 0.7",
                                       "set seed 3",
                                       "play",
                                       "help",
                                       "messages"};

static size_t
command(uint64_t *rng, char *out)
{
    return (size_t)snprintf(out, EVENT_BYTES, "%s:%s\r", below(rng, 4) == 0 ? "\033\033" : "\033", PICK(rng, commands));
}

static size_t
pasted(uint64_t *rng, char *out)
{
    size_t n = text_event(out, "\033[200~");
    for (unsigned i = below(rng, 400); i > 0; i--)
        out[n++] = (char)(below(rng, 8) == 0 ? below(rng, 256) : ' ' + below(rng, 95));
    return n + text_event(out + n, below(rng, 5) == 0 ? "" : "\033[201~");
}

/* Writes bytes of any value, incomplete escapes, or replies of terminals. */
static size_t
noise(uint64_t *rng, char *out)
{
    static const char *const answers[] = {"\033[?62;1;4c",      "\033P1$r48:2:1:2:3m\033\\",
                                          "\033P0$r\033\\",     "\033[?1;2",
                                          "\033[<0;99999;1M",   "\033[<;;M",
                                          "\033[200",           "\033P1$r",
                                          "\033]11;rgb:00/0\a", "\033[I\033[O",
                                          "\033[8;24;80t",      "\xf0\x9f\x90\xad",
                                          "\xc3\xa9",           "\xe2\x80\xae"};
    if (below(rng, 2) == 0)
        return text_event(out, PICK(rng, answers));
    size_t n = 0;
    for (unsigned i = 1 + below(rng, 12); i > 0; i--) {
        const char c = (char)below(rng, 256);
        if (c != 0x1c) /* Ctrl-\ would dump core */
            out[n++] = c;
    }
    return n;
}

size_t
random_event(uint64_t *rng, unsigned cols, unsigned rows, char out[EVENT_BYTES])
{
    const unsigned what = below(rng, 100);
    if (what < 35)
        return bound_key(rng, out);
    if (what < 55)
        return named_key(rng, out);
    if (what < 80)
        return mouse(rng, cols, rows, out);
    if (what < 88)
        return command(rng, out);
    if (what < 92) {
        out[0] = (char)(' ' + below(rng, 95));
        return 1;
    }
    return what < 94 ? pasted(rng, out) : noise(rng, out);
}
