/* specscope models: lists the models on this machine by their names. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/plural.h"
#include "base/utf8.h"
#include "cli/options/commands.h"
#include "cli/options/option_table.h"
#include "engine/model/memory.h"
#include "engine/model/model_locations.h"
#include "engine/model/model_open.h"

static bool
print_model(void *user, const char *name, const char *path)
{
    size_t *n = user;
    struct model_summary summary;
    char shown[300], size[24];
    printable_line(shown, sizeof shown, name, strlen(name));
    model_summary(&summary, path, memory_available());
    (*n)++;
    if (summary.runs)
        printf("%-44s %9s  %s, %" PRIu32 " layer%s, %s%s%s\n", shown, memory_text(size, summary.bytes), summary.arch,
               summary.layers, plural(summary.layers), summary.types, summary.why[0] != '\0' ? "; " : "", summary.why);
    else
        printf("%-44s -  %s\n", shown, summary.why);
    return true;
}

bool
models_main(struct options *o, int *status, struct err *err)
{
    (void)o, (void)status;
    size_t n = 0;
    print_model(&n, MODEL_BUNDLED, bundled_model_path());
    const bool all = model_locations_list(print_model, &n, err);
    if (n == 1 && all)
        printf("nothing in the caches of Hugging Face, Ollama, LM Studio and llama.cpp; any .gguf file or folder will "
               "do\n");
    return stream_close(stdout, "stdout", all ? err : NULL) && all;
}
