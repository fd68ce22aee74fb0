/* Chat templates that lie beside a Hugging Face folder's tokenizer. */
#ifndef ENGINE_SYNTHETIC_FOLDER_TEMPLATES_H
#define ENGINE_SYNTHETIC_FOLDER_TEMPLATES_H

#include "engine/tokenizer/tokenizer.h"

/* chat_template.jinja is the default, additional_chat_templates/NAME.jinja another one; both count more than what
 * tokenizer_config.json has, and chat_template.json less. No file is no error. */
bool folder_templates_read(struct tokenizer *, const char *folder, struct err *);

#endif
