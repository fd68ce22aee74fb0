/* Where the config file lies, and that it need not be there. */
#ifndef CLI_OPTIONS_OPTION_CONFIG_H
#define CLI_OPTIONS_OPTION_CONFIG_H

#include "cli/options/options.h"

/* $XDG_CONFIG_HOME/specscope/config.json, or that in ~/.config; none is no error. */
bool options_config_file(struct options *, struct err *);

#endif
