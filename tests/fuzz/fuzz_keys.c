/* Untrusted keys, mouse reports, replies of terminals and pasted text: the scope processes them on a replayed trace and
 * restores the terminal. The first two bytes are the terminal's size; a byte 0xfe resizes it. */
#include "tests/fuzz/app_rig.h"
#include "tests/fuzz/fuzz.h"

#define KEYS_MOST 512
#define ROUNDS    6

static const char *const traces[] = {"specbound", "swift", "batch", "sv"};

static void
press(struct app *app, const uint8_t *data, size_t size)
{
    char bytes[KEYS_MOST];
    for (size_t i = 0; i < size && !app->quit;) {
        const uint8_t *resize = memchr(data + i, 0xfe, size - i);
        const size_t n = resize != NULL ? (size_t)(resize - data) - i : size - i;
        if (n > 0) {
            memcpy(bytes, data + i, n);
            app_rig_tame(bytes, n);
            app_rig_type(bytes, n);
        }
        for (int k = 0; k < 4 && !app->quit; k++)
            app_cycle(app, k == 0 ? 1 : 0);
        i += n + (resize != NULL);
        if (resize != NULL && i + 1 < size)
            app_rig_size(1 + data[i] % 80, 1 + data[i + 1] % 200);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char root[4096];
    static struct app app;
    struct replay *replay;
    struct err err = {0};
    if (root[0] == '\0') {
        app_rig_open(root);
        for (size_t i = 0; i < sizeof traces / sizeof *traces; i++)
            app_rig_trace(root, traces[i], ROUNDS);
    }
    if (size < 3 || size > KEYS_MOST)
        return 0;
    const char *path = traces[data[0] / 64];
    MUST(replay_open(&replay, path, false, &err));
    app_rig_size(1 + data[0] % 64, 1 + data[1] % 200);
    const struct source source = {.replay = replay, .trace = path, .saved = true};
    const struct app_options options = {.presets = "presets", .command_path = "command"};
    if (app_begin(&app, &source, &options))
        press(&app, data + 2, size - 2);
    const int status = app_end(&app, &err);
    MUST(status == 0 || err.text[0] != '\0');
    replay_close(replay);
    return 0;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    static const char *const pieces[] = {"\033[<0;12;7M",
                                         "\033[<0;12;7m",
                                         "\033[<64;30;9M",
                                         "\033[<32;40;12M",
                                         "\033[A",
                                         "\033[B",
                                         "\033[1;2C",
                                         "\033[1;2D",
                                         "\t",
                                         "\r",
                                         "\033[200~",
                                         "\033[201~",
                                         "\033[?1;2c",
                                         "\033P1+r",
                                         "\033[5~",
                                         "\033[6~",
                                         ":goto 5\r",
                                         ":set tau 0.5\r",
                                         ":what-if\r",
                                         ":zoom\r",
                                         "]",
                                         "v",
                                         "\xfe\x20\x50"};
    if (seed % 3 != 0 || size < 2)
        return LLVMFuzzerMutate(data, size, max_size);
    const char *piece = pieces[seed / 3 % (sizeof pieces / sizeof *pieces)];
    const size_t n = strlen(piece), at = 2 + seed / 97 % (size - 1);
    if (size + n > max_size)
        return size;
    memmove(data + at + n, data + at, size - at);
    memcpy(data + at, piece, n);
    return size + n;
}
