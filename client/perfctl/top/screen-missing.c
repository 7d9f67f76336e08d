/* In the place of screen.c where ncursesw is not installed: `top` prints tables. */
#include "client/perfctl/top/screen.h"

bool screen_is_possible(void) {
        return false;
}

const char *screen_lack(void) {
        return "this perfctl was built without ncursesw";
}

int screen_open(const Perfctl *p) {
        return perfctl_fail(p, PERFCTL_FAILED, "%s: --batch prints tables instead", screen_lack());
}

void screen_close(void) {
}

bool screen_is_open(void) {
        return false;
}

TerminalSize screen_size(void) {
        return (TerminalSize){ .rows = 0 };
}

int screen_key(void) {
        return SCREEN_NONE;
}

void screen_begin(void) {
}

void screen_put_line(size_t row, ScreenStyle style, const char *text, size_t n) {
}

void screen_end(void) {
}

const char *screen_message(void) {
        return NULL;
}
