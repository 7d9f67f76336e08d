/*
 * For `top`: a terminal, by ncursesw(3NCURSES). There is one, of stdin and stdout. While it is open, what others write to stderr, if that is
 * a terminal too, is kept, and is written there when it has been closed.
 */
#pragma once

#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/base/terminal.h"

typedef enum ScreenStyle {
        SCREEN_PLAIN,
        SCREEN_HEADING,
        SCREEN_WARNING,
        SCREEN_DIM,
} ScreenStyle;

/* What screen_key() gives beside the bytes that were typed. */
typedef enum ScreenKey {
        SCREEN_NONE = -1,
        SCREEN_UP = 256,
        SCREEN_DOWN,
        SCREEN_PAGE_UP,
        SCREEN_PAGE_DOWN,
        SCREEN_HOME,
        SCREEN_END,
        SCREEN_BACKSPACE,
        SCREEN_ENTER,
        SCREEN_ESCAPE,
        SCREEN_OTHER, /* another one that is no character */
} ScreenKey;

/* Whether there can be one: this program was built with it, and both are a terminal. */
bool screen_is_possible(void);
/* NULL, or why there cannot be one at all. */
const char *screen_lack(void);
/* From now on the signals of base/signals.h leave it as it was. 0, or an exit status after a message. */
int screen_open(const Perfctl *p);
/* If it is open: the terminal is as before, and what was written to stderr is there. */
void screen_close(void);
bool screen_is_open(void);
/* Of the terminal, now; where it has changed, all of it is drawn. */
TerminalSize screen_size(void);
/* The next key that waits, or SCREEN_NONE. */
int screen_key(void);
void screen_begin(void);
/* Of a row from 0 on: text of which a terminal may get each character, as text_put() writes it; what is too wide is not shown. */
void screen_put_line(size_t row, ScreenStyle style, const char *text, size_t n);
void screen_end(void);
/* The last line that stderr got since it is open; NULL: none; until the next call. */
const char *screen_message(void);
