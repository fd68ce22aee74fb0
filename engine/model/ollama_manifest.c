#include "engine/model/ollama_manifest.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/json_read.h"

#define WEIGHTS "application/vnd.ollama.image.model"
#define ADAPTER "application/vnd.ollama.image.adapter"
#define DIGEST  "sha256:"

bool
ollama_manifest_blobs(const char *text, size_t n, struct ollama_blobs *out)
{
    cJSON *json;
    const cJSON *layer;
    const size_t begun = sizeof DIGEST - 1;
    *out = (struct ollama_blobs){.weights = ""};
    if (!json_read(&json, text, n))
        return false;
    cJSON_ArrayForEach(layer, cJSON_GetObjectItemCaseSensitive(json, "layers"))
    {
        const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(layer, "mediaType"));
        const char *digest = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(layer, "digest"));
        char *to = kind == NULL                 ? NULL
                   : strcmp(kind, WEIGHTS) == 0 ? out->weights
                   : strcmp(kind, ADAPTER) == 0 ? out->adapter
                                                : NULL;
        if (to != NULL && digest != NULL && strncmp(digest, DIGEST, begun) == 0 &&
            digest[begun + strspn(digest + begun, "0123456789abcdef")] == '\0')
            snprintf(to, OLLAMA_BLOB_MOST, "blobs/sha256-%.64s", digest + begun);
    }
    cJSON_Delete(json);
    return true;
}
