/* What each number of the bars and panels means, for help. docs/methods.md has the formulas. */
#ifndef TUI_WIDGETS_GLOSSARY_H
#define TUI_WIDGETS_GLOSSARY_H

extern const struct glossary {
    const char *name, *what;
} glossary[]; /* ends with a name of NULL */

#endif
