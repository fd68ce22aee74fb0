/* What policies have learned about a model, from one session to the next: a text a policy (policy_ops.save, load). Who
 * opens several sessions gives all of them one memory; with a folder, what they learned also lasts until the next
 * command, in FOLDER/POLICY-HASH.json, the hash being the model's. */
#ifndef ENGINE_EVENTS_POLICY_MEMORY_H
#define ENGINE_EVENTS_POLICY_MEMORY_H

#include "engine/events/policy.h"

#define MEMORY_POLICIES 16 /* most policies that learn */

struct policy_memory {
    const char *folder; /* borrowed; NULL: nothing is read or written */
    uint64_t model_hash;
    struct memory_text {
        char policy[16];
        char *text; /* owned; NULL: there was no file */
        bool fresh; /* not in the file yet */
    } texts[MEMORY_POLICIES];
    uint32_t n;
};

/* Gives the policy what is kept for it; the file is read when it is first asked for. Nothing there: true. False: a file
 * that cannot be read, or a text that is not the policy's. */
bool policy_memory_recall(struct policy_memory *, struct policy *, struct err *);
/* Takes what the policy has learned; a policy that has nothing to tell leaves what is kept. */
void policy_memory_keep(struct policy_memory *, const struct policy *);
/* Writes what is fresh, beside the old file and then in its place, and frees the texts. False: the first file that
 * could not be written. */
bool policy_memory_close(struct policy_memory *, struct err *);

#endif
