#include "cli/options/policy_list.h"

#include <stdio.h>

void
policies_each(void (*look)(void *user, const struct policy_ops *, const struct policy_info *), void *user)
{
    const struct model_info usual = {.layers = 32, .width = 4096, .vocab = 32000, .rho = 0.65};
    const struct sampling greedy = {.top_p = 1};
    for (size_t i = 0; policy_registry[i] != NULL; i++) {
        struct policy p;
        if (!policy_open(&p, policy_registry[i], &usual, &greedy, NULL))
            p.info.n_knobs = 0;
        look(user, p.ops, &p.info);
        policy_close(&p);
    }
}

static void
print_policy(void *user, const struct policy_ops *ops, const struct policy_info *info)
{
    (void)user;
    printf("%-12s%s%s%s\n", ops->name, ops->title, ops->paper[0] != '\0' ? "; " : "", ops->paper);
    char missing[96];
    for (unsigned need = 1; need <= ops->needs; need <<= 1)
        if ((ops->needs & need) != 0)
            printf("    needs %s\n", policy_missing(need, missing, sizeof missing));
    for (uint32_t k = 0; k < info->n_knobs; k++) {
        char value[32];
        knob_format(&info->knobs[k], info->knobs[k].def, value, sizeof value);
        printf("    %-14s%-10s%s\n", info->knobs[k].name, value, info->knobs[k].help);
    }
}

void
policies_list(void)
{
    policies_each(print_policy, NULL);
    puts("(defaults for a model of 32 layers; they scale with the model)");
}
