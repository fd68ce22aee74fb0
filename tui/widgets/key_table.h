/* The keys that mean the same whatever panel is in focus: each is a ':' command. */
#ifndef TUI_WIDGETS_KEY_TABLE_H
#define TUI_WIDGETS_KEY_TABLE_H

extern const struct app_key {
    int key;
    const char *keys, *line, *what; /* line: the ':' command; what: for help, NULL: told beside another key */
} app_keys[];                       /* ends with a key of INPUT_NONE */

#endif
