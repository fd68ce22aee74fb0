#include "cli/options/preset_option.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/commands.h"
#include "cli/options/option_setters.h"
#include "engine/base/printable.h"
#include "engine/events/preset.h"

static bool
take(struct options *o, const struct preset *p, struct err *err)
{
    o->n_set -= o->n_config_set; /* the config file's settings are for the policy there */
    memmove(o->set, o->set + o->n_config_set, o->n_set * sizeof *o->set);
    o->policies.n = 0;
    bool ok = set_policy(o, option_find("policy", o->command), p->policy, err);
    for (uint32_t i = 0; i < p->n_set && ok; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s=%s", p->set[i].name, p->set[i].text);
        ok = set_knob(o, option_find("set", o->command), text, err);
    }
    o->n_config_set = o->n_set; /* another --policy behind it has no use for them */
    for (int i = 0; i < SAMPLING_KNOBS && ok; i++)
        ok = p->sampling[i][0] == '\0' ||
             option_set(o, option_find(preset_sampling[i], o->command), p->sampling[i], err);
    return ok && (p->head[0] == '\0' || set_head(o, option_find("head", o->command), p->head, err));
}

bool
set_preset(struct options *o, const struct option_row *row, const char *name, struct err *err)
{
    char folder[1024];
    struct preset p;
    struct err inner = {0};
    if (config_path(folder, sizeof folder, "presets") == NULL)
        return err_set(err, ERR_USAGE, "--%s %.60s: neither XDG_CONFIG_HOME nor HOME says where presets lie", row->name,
                       name);
    return (preset_read(&p, folder, name, &inner) && take(o, &p, &inner)) ||
           err_set(err, inner.kind, "--%s %.60s: %.400s", row->name, name, inner.text);
}

static void
print_preset(const char *folder, const char *name)
{
    struct preset p;
    struct err err = {0};
    char safe[4 * sizeof err.text + 1];
    if (!preset_read(&p, folder, name, &err)) {
        printable_text(err.text, strlen(err.text), safe, sizeof safe);
        printf("%-16s cannot be used: %s\n", name, safe);
        return;
    }
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    if (out == NULL)
        return;
    fputs(p.policy, out);
    for (uint32_t i = 0; i < p.n_set; i++)
        fprintf(out, " %s=%s", p.set[i].name, p.set[i].text);
    if (p.head[0] != '\0')
        fprintf(out, " head=%s", p.head);
    for (int i = 0; i < SAMPLING_KNOBS; i++)
        if (p.sampling[i][0] != '\0')
            fprintf(out, " %s=%s", preset_sampling[i], p.sampling[i]);
    fclose(out);
    printable_text(text, strlen(text), safe, sizeof safe);
    printf("%-16s %s\n", name, safe);
    free(text);
}

void
presets_list(void)
{
    char folder[1024];
    struct preset_names names = {NULL, 0};
    if (config_path(folder, sizeof folder, "presets") == NULL || !preset_list(&names, folder, NULL) || names.n == 0)
        puts("there is no preset yet; :preset save NAME makes one in the scope");
    for (size_t i = 0; i < names.n; i++)
        print_preset(folder, names.name[i]);
    preset_names_free(&names);
}
