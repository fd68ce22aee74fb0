/* What `specscope info` says of how a model computes. */
#ifndef CLI_INFO_FORM_H
#define CLI_INFO_FORM_H

#include "engine/model/model.h"

/* What of it is not Llama's, ", squared ReLU, LayerNorm, …", behind what is on the line already. */
void info_print_form(const struct model_desc *);
/* Lines about the experts, if there are any. */
void info_print_experts(const struct model *);

#endif
