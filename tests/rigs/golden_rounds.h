/* Rounds of feature drafters against a reference: reads tests/golden/FOLDER/CASE/expect.json, whose form
 * tests/golden/make_eagle_golden.py and make_block_golden.py explain, and compares the text, the drafts and the numbers
 * of accepted ones with those of sessions. */
#pragma once

#include <cjson/cJSON.h>

#include "engine/session/session_internal.h"

struct golden_rounds {
    const char *folder;  /* "tests/golden/eagle/" */
    const char *backend; /* "cpu", or "cuda" */
    uint64_t seed;
    uint32_t step; /* one run in `step` is compared, which the seed chooses; of few runs at least one */
};

/* Fail the test if the file is missing or invalid. The caller deletes the case. */
cJSON *golden_rounds_read(const struct golden_rounds *, const char *name);
const cJSON *golden_item(const cJSON *, const char *name);
/* Compares a case's runs with sessions on a target, whose path is relative to the case's folder. Fails the test at the
 * first difference. Returns the number of rounds that were compared. */
uint32_t golden_rounds_compare(const struct golden_rounds *, const char *name, const cJSON *, const char *target);
/* Fails the test unless opening the drafter for the target fails with this message in one line. */
void golden_rounds_refused(const char *head, const char *target, const char *why);
/* Writes a copy of a file in which a text is replaced by one of the same length. */
void golden_write_changed(const char *path, const char *file, const char *from, const char *to);
