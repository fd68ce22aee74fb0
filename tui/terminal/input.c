#include "tui/terminal/input.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

/* ---- names of keys ---- */

static const struct {
    const char *name;
    int key;
} names[] = {
    {"Enter", INPUT_ENTER},
    {"Return", INPUT_ENTER},
    {"Tab", INPUT_TAB},
    {"S-Tab", INPUT_SHIFT_TAB},
    {"Esc", INPUT_ESCAPE},
    {"Escape", INPUT_ESCAPE},
    {"Space", ' '},
    {"Backspace", INPUT_BACKSPACE},
    {"↑", INPUT_UP},
    {"↓", INPUT_DOWN},
    {"←", INPUT_LEFT},
    {"→", INPUT_RIGHT},
    {"Up", INPUT_UP},
    {"Down", INPUT_DOWN},
    {"Left", INPUT_LEFT},
    {"Right", INPUT_RIGHT},
    {"S-Up", INPUT_SHIFT_UP},
    {"S-Down", INPUT_SHIFT_DOWN},
    {"S-Left", INPUT_SHIFT_LEFT},
    {"S-Right", INPUT_SHIFT_RIGHT},
    {"Home", INPUT_HOME},
    {"End", INPUT_END},
    {"PageUp", INPUT_PAGE_UP},
    {"PageDown", INPUT_PAGE_DOWN},
    {"Insert", INPUT_INSERT},
    {"Delete", INPUT_DELETE},
};

int
input_named(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcasecmp(name, names[i].name) == 0)
            return names[i].key;
    const size_t length = strlen(name);
    if ((length == 2 || length == 3) && (name[0] | 0x20) == 'f' && name[1] != '0' &&
        strspn(name + 1, "0123456789") == length - 1) {
        const long number = strtol(name + 1, NULL, 10);
        return number <= 12 ? INPUT_F1 + (int)number - 1 : INPUT_NONE;
    }
    if (length == 3 && (name[0] | 0x20) == 'c' && name[1] == '-') {
        const char letter = (char)(name[2] | 0x20);
        return letter >= 'a' && letter <= 'z' ? INPUT_CTRL(letter) : INPUT_NONE;
    }
    uint32_t code;
    return length > 0 && utf8_character(name, length, &code) == length && code >= ' ' && code != 0x7f ? (int)code
                                                                                                      : INPUT_NONE;
}

/* ---- decoding ---- */

#define ESC        '\033'
#define CTRL_C     '\003'
#define PASTE_ENDS "\033[201~"
#define ESCAPE_MS  25   /* after a lone Escape */
#define REST_MS    1000 /* within a character or a sequence */
#define LONGEST    96   /* bytes of a sequence */

const char *const input_question = "\033[48;2;1;2;3m\033P$qm\033\\\033[0m\033[c";

const char *const own_key_names[OWN_KEYS] = {"kcuu1", "kcud1", "kcub1", "kcuf1", "khome", "kend", "kich1",
                                             "kf1",   "kf2",   "kf3",   "kf4",   "kf5",   "kf6",  "kf7",
                                             "kf8",   "kf9",   "kf10",  "kf11",  "kf12"};
static const int own_keys[OWN_KEYS] = {INPUT_UP,     INPUT_DOWN,   INPUT_LEFT,    INPUT_RIGHT,  INPUT_HOME,
                                       INPUT_END,    INPUT_INSERT, INPUT_F1,      INPUT_F1 + 1, INPUT_F1 + 2,
                                       INPUT_F1 + 3, INPUT_F1 + 4, INPUT_F1 + 5,  INPUT_F1 + 6, INPUT_F1 + 7,
                                       INPUT_F1 + 8, INPUT_F1 + 9, INPUT_F1 + 10, INPUT_F12};

/* Sequences that terminals share, whatever terminfo has of them. */
static const struct {
    const char *bytes;
    int key;
} sequences[] = {
    {"\033[A", INPUT_UP},
    {"\033OA", INPUT_UP},
    {"\033[B", INPUT_DOWN},
    {"\033OB", INPUT_DOWN},
    {"\033[C", INPUT_RIGHT},
    {"\033OC", INPUT_RIGHT},
    {"\033[D", INPUT_LEFT},
    {"\033OD", INPUT_LEFT},
    {"\033[1;2A", INPUT_SHIFT_UP},
    {"\033[a", INPUT_SHIFT_UP},
    {"\033[1;2B", INPUT_SHIFT_DOWN},
    {"\033[b", INPUT_SHIFT_DOWN},
    {"\033[1;2C", INPUT_SHIFT_RIGHT},
    {"\033[c", INPUT_SHIFT_RIGHT},
    {"\033[1;2D", INPUT_SHIFT_LEFT},
    {"\033[d", INPUT_SHIFT_LEFT},
    {"\033[H", INPUT_HOME},
    {"\033OH", INPUT_HOME},
    {"\033[1~", INPUT_HOME},
    {"\033[7~", INPUT_HOME},
    {"\033[F", INPUT_END},
    {"\033OF", INPUT_END},
    {"\033[4~", INPUT_END},
    {"\033[8~", INPUT_END},
    {"\033[5~", INPUT_PAGE_UP},
    {"\033[6~", INPUT_PAGE_DOWN},
    {"\033[2~", INPUT_INSERT},
    {"\033[3~", INPUT_DELETE},
    {"\033[Z", INPUT_SHIFT_TAB},
    {"\033OM", INPUT_ENTER},
    {"\033OP", INPUT_F1},
    {"\033OQ", INPUT_F1 + 1},
    {"\033OR", INPUT_F1 + 2},
    {"\033OS", INPUT_F1 + 3},
    {"\033[200~", INPUT_PASTE_BEGIN},
    {PASTE_ENDS, INPUT_NONE}, /* without a beginning */
};

/* Compares the undecoded bytes with a sequence. Returns its length if they begin with it; else 0, and sets *open if
 * more bytes may complete it. */
static size_t
match(const struct input_decoder *d, const char *sequence, bool *open)
{
    const size_t n = sequence == NULL ? 0 : strlen(sequence), have = n < d->n ? n : d->n;
    if (n == 0 || memcmp(d->bytes, sequence, have) != 0)
        return 0;
    *open = *open || have < n;
    return have == n ? n : 0;
}

/* xterm's button byte: two bits of the button, modifiers, 32 for a movement, 64 for the wheel. */
static bool
mouse_action(unsigned button, bool released, enum mouse_action *action)
{
    const unsigned which = button & ~(4U | 8U | 16U); /* without Shift, Meta, Control */
    if (which == 64 || which == 65)
        *action = which == 64 ? MOUSE_WHEEL_UP : MOUSE_WHEEL_DOWN;
    else if (which == 0)
        *action = released ? MOUSE_RELEASE : MOUSE_PRESS;
    else if (which == 32)
        *action = MOUSE_DRAG;
    else
        return false;
    return true;
}

/* Parses three numbers, each followed by ';' or, after the last one, by the end. */
static bool
three_numbers(const char *text, unsigned number[3])
{
    for (int i = 0; i < 3; i++) {
        char *after = NULL;
        const unsigned long value = strtoul(text, &after, 10);
        if (after == text || value > 0xffff || (i < 2 ? after[0] != ';' : after[1] != '\0'))
            return false;
        number[i] = (unsigned)value;
        text = after + 1;
    }
    return true;
}

/* CSI < button ; column ; row M, or m for a release. INPUT_NONE: an unwanted event, such as a movement without a
 * button. */
static int
mouse_event(const char *numbers, bool released, struct input *in)
{
    unsigned number[3];
    if (!three_numbers(numbers, number) || number[1] == 0 || number[2] == 0 ||
        !mouse_action(number[0], released, &in->mouse))
        return INPUT_NONE;
    in->x = (int)number[1] - 1;
    in->y = (int)number[2] - 1;
    return INPUT_MOUSE;
}

/* CSI M and three characters: columns up to 223. */
static int
old_mouse_event(const char bytes[3], struct input *in)
{
    const int button = (unsigned char)bytes[0] - ' ', x = (unsigned char)bytes[1] - ' ',
              y = (unsigned char)bytes[2] - ' ';
    const bool released = (button & 3) == 3 && button < 32; /* of whichever button it was */
    if (button < 0 || x < 1 || y < 1 || !mouse_action(released ? 0 : (unsigned)button, released, &in->mouse))
        return INPUT_NONE;
    in->x = x - 1;
    in->y = y - 1;
    return INPUT_MOUSE;
}

/* The following functions decode the event at the beginning of the bytes. They return how many bytes it has; 0: not all
 * are there. */

/* A control sequence that is no key of the tables: CSI, parameters, intermediate bytes, a final byte. */
static size_t
decode_control(const struct input_decoder *d, struct input *in)
{
    char text[LONGEST + 1];
    size_t n = 2;
    while (n < d->n && n < LONGEST && d->bytes[n] >= 0x20 && d->bytes[n] < 0x40)
        n++;
    if (n == d->n && n < LONGEST)
        return 0;
    const char final = n < LONGEST ? d->bytes[n] : '\0';
    if (final < 0x40 || final > 0x7e)
        return n; /* broken: the next byte is no part of it */
    memcpy(text, d->bytes, n + 1);
    text[n + 1] = '\0';
    if (n == 2 && final == 'M') {
        in->key = d->n < 6 ? INPUT_NONE : old_mouse_event(d->bytes + 3, in);
        return d->n < 6 ? 0 : 6;
    }
    if (text[2] == '<' && (final == 'M' || final == 'm'))
        in->key = mouse_event(text + 3, final == 'm', in);
    else if (text[2] == '?' && final == 'c')
        in->key = INPUT_ANSWERED;
    return n + 1;
}

/* The answer to DECRQSS: DCS 1 $ r or DCS 0 $ r, the state, ST. */
static size_t
decode_state(const struct input_decoder *d, struct input *in)
{
    char text[LONGEST + 1];
    size_t n = 1;
    while (n < d->n && n < LONGEST && (unsigned char)d->bytes[n] >= ' ')
        n++;
    if (n + 1 >= d->n && n < LONGEST && (n == d->n || d->bytes[n] == ESC))
        return 0;
    if (n == LONGEST || d->bytes[n] != ESC || d->bytes[n + 1] != '\\')
        return n;
    memcpy(text, d->bytes, n);
    text[n] = '\0';
    if (strstr(text, ":1:2:3") != NULL || strstr(text, ";1;2;3") != NULL)
        in->key = INPUT_DIRECT;
    return n + 2;
}

static size_t
decode_escape(const struct input_decoder *d, struct input *in)
{
    bool open = false;
    size_t n;
    for (int i = 0; i < OWN_KEYS; i++)
        if ((n = match(d, d->own[i], &open)) > 0) {
            in->key = own_keys[i];
            return n;
        }
    for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++)
        if ((n = match(d, sequences[i].bytes, &open)) > 0) {
            in->key = sequences[i].key;
            return n;
        }
    if (match(d, "\033P1$r", &open) > 0 || match(d, "\033P0$r", &open) > 0)
        return decode_state(d, in);
    if (open)
        return 0;
    if (match(d, "\033[", &open) > 0)
        return decode_control(d, in);
    in->key = INPUT_ESCAPE;
    return 1;
}

static size_t
decode_pasted(const struct input_decoder *d, struct input *in)
{
    bool open = false;
    const size_t n = match(d, PASTE_ENDS, &open);
    in->key = n > 0 ? INPUT_PASTE_END : INPUT_NONE; /* an ESC of the text is dropped */
    return n > 0 ? n : open ? 0 : 1;
}

static size_t
decode_character(const struct input_decoder *d, bool late, struct input *in)
{
    uint32_t code = 0xfffd;
    size_t n = utf8_character(d->bytes, d->n, &code);
    if (n == 0 && !late && utf8_is_cut(d->bytes, d->n))
        return 0;
    in->key = n > 0 ? (int)code : 0xfffd;
    in->pasted = d->pasting;
    if (in->key == '\b')
        in->key = d->pasting ? INPUT_NONE : INPUT_BACKSPACE;
    else if (d->pasting && (in->key < ' ' || in->key == 0x7f) && strchr("\t\n\r", in->key) == NULL)
        in->key = INPUT_NONE; /* a control character of a text is no key */
    return n > 0 ? n : utf8_broken(d->bytes, d->n);
}

/* Ctrl-C leaves a paste whose end was lost, if nothing comes after it: a text has one in its middle, if at all. */
static bool
leaves_paste(const struct input_decoder *d)
{
    size_t n = 0;
    while (n < d->n && d->bytes[n] == CTRL_C)
        n++;
    return d->pasting && n > 0 && n == d->n && n < LONGEST;
}

bool
input_decode(struct input_decoder *d, bool late, struct input *in)
{
    *in = (struct input){.key = INPUT_NONE};
    while (d->n > 0 && in->key == INPUT_NONE) {
        *in = (struct input){.key = INPUT_NONE};
        size_t n;
        if (leaves_paste(d)) {
            d->pasting = !late;
            in->key = late ? INPUT_PASTE_END : INPUT_NONE;
            break;
        }
        if (d->bytes[0] != ESC)
            n = decode_character(d, late, in);
        else if (d->pasting)
            n = decode_pasted(d, in);
        else
            n = decode_escape(d, in);
        if (n == 0 && (!late || d->pasting))
            break;
        if (n == 0) { /* late */
            const bool control = d->n > 1 && d->bytes[1] != 'O';
            in->key = control ? INPUT_NONE : INPUT_ESCAPE;
            n = control ? d->n : 1;
        }
        memmove(d->bytes, d->bytes + n, d->n -= n);
        if (in->key == INPUT_PASTE_BEGIN || in->key == INPUT_PASTE_END)
            d->pasting = in->key == INPUT_PASTE_BEGIN;
    }
    return in->key != INPUT_NONE;
}

int
input_patience_ms(const struct input_decoder *d)
{
    return d->n == 0 || (d->pasting && !leaves_paste(d)) ? -1 : d->n == 1 && d->bytes[0] == ESC ? ESCAPE_MS : REST_MS;
}

struct step
input_step(int key, long page)
{
    switch (key) {
    case 'h':
    case INPUT_LEFT: return (struct step){.right = -1};
    case 'l':
    case INPUT_RIGHT: return (struct step){.right = 1};
    case 'k':
    case INPUT_UP: return (struct step){.down = -1};
    case 'j':
    case INPUT_DOWN: return (struct step){.down = 1};
    case INPUT_PAGE_UP: return (struct step){.down = -page};
    case INPUT_PAGE_DOWN: return (struct step){.down = page};
    default: return (struct step){0};
    }
}

int
mouse_wheel(enum mouse_action action)
{
    return action == MOUSE_WHEEL_UP ? -1 : action == MOUSE_WHEEL_DOWN;
}
