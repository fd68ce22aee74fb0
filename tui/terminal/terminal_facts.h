/* What can be known of the terminal without opening the scope on it: from the environment, from terminfo, by asking. */
#ifndef TUI_TERMINAL_TERMINAL_FACTS_H
#define TUI_TERMINAL_TERMINAL_FACTS_H

#include <stdbool.h>

struct terminal_facts {
    const char *type;      /* $TERM; NULL: not set */
    const char *stands_in; /* the type that it is used as, for terminfo does not have its own; NULL: it has */
    bool known;            /* terminfo has it, */
    bool places;           /* and it can put the cursor somewhere */
    int colours;           /* of terminfo; 0: none */
    bool direct_type;      /* … which says that it has 24-bit colours */
    bool direct_said;      /* … or $COLORTERM says so, */
    bool direct_told;      /* … or the terminal, when it was asked */
    bool mouse;            /* understands modes and questions: what knows a mouse does */
    int rows, cols;        /* 0: nobody says */
};

/* Of the terminal that standard output is; it is asked only where standard input is one too. Modes are left as they were.
 * After terminal_open() no more, for it looks at terminfo anew. */
void terminal_look(struct terminal_facts *);

/* The user's locale, or C.UTF-8 where that is no UTF-8 one and plain C was not asked for; true: UTF-8. Numbers are always
 * written with a point. */
bool terminal_choose_locale(void);
/* $COLORTERM speaks of 24-bit colours, for the terminal that $TERM names. */
bool terminal_direct_said(void);
/* setupterm() with what the system knows of the type (NULL: $TERM), else with what the program brings along. */
bool terminal_setup(const char *type, int fd);
/* Where terminfo has no such type as $TERM: asks the terminal what it is, and if it answers like an xterm, as nearly all do that there
 * are, $TERM becomes xterm-256color. False: it doesn't answer, in five seconds, or is no terminal. */
bool terminal_stand_in(void);
/* Whether it can be asked for more than terminfo tells: else it is a real vt100, or a console. After setupterm(). */
bool terminal_understands(void);

#endif
