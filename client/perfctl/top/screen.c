/*
 * ncurses gets whole lines, and writes what has changed. A second SIGINT ends the program in its handler, where ncurses cannot be called: so
 * the way back is written down when the screen is opened. stderr goes to a file in memory meanwhile, because messages come from many
 * places, libraries too, and each would be written into the table.
 */
#include "client/perfctl/top/screen.h"

#include <curses.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include "client/perfctl/base/signals.h"
#include "client/perfctl/base/text.h"

#undef columns /* macros of term.h */
#undef lines

#define ESCAPE 27
#define DELETE 127
#define MESSAGES_MAX ((off_t)1 << 20) /* bytes */
#define ESCAPE_DELAY 25 /* ms that the rest of a key's bytes may take */

static SCREEN *screen;
static struct termios before; /* of stdin */
static char way_back[256];
static size_t n_way_back;
static int real_stderr = -1, messages = -1;
static TerminalSize known;
static bool is_noted;

bool screen_is_possible(void) {
        return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

const char *screen_lack(void) {
        return NULL;
}

bool screen_is_open(void) {
        return screen != NULL;
}

/* ---- stderr ----------------------------------------------------------------------------------------------------------------------- */

static void keep_messages(void) {
        if (!isatty(STDERR_FILENO))
                return;
        messages = memfd_create("messages", MFD_CLOEXEC);
        real_stderr = messages >= 0 ? dup(STDERR_FILENO) : -1;
        if (real_stderr >= 0)
                (void)dup2(messages, STDERR_FILENO);
}

static void put_all(int fd, const char *bytes, size_t n) {
        while (n > 0) {
                ssize_t written = write(fd, bytes, n);

                if (written < 0 && errno != EINTR)
                        return; /* there is no other place to say it */
                bytes += written > 0 ? written : 0;
                n -= written > 0 ? (size_t)written : 0;
        }
}

static void give_messages(void) {
        char bytes[4096];
        ssize_t n;
        off_t at = 0;

        if (real_stderr < 0)
                return;
        (void)dup2(real_stderr, STDERR_FILENO);
        while ((n = pread(messages, bytes, sizeof(bytes), at)) > 0) {
                put_all(STDERR_FILENO, bytes, (size_t)n);
                at += n;
        }
        (void)close(real_stderr);
        (void)close(messages);
        real_stderr = messages = -1;
}

const char *screen_message(void) {
        static char line[1024];
        static const char left_out[] = "perfctl: earlier messages are left out\n";
        off_t size;
        size_t n;
        char *end;

        if (real_stderr < 0 || (size = lseek(messages, 0, SEEK_END)) <= 0)
                return NULL;
        n = (size_t)size < sizeof(line) - 1 ? (size_t)size : sizeof(line) - 1;
        if (pread(messages, line, n, size - (off_t)n) != (ssize_t)n)
                return NULL;
        while (n > 0 && line[n - 1] == '\n')
                n--;
        line[n] = '\0';
        end = memrchr(line, '\n', n);
        if (size > MESSAGES_MAX && ftruncate(messages, 0) == 0 && lseek(messages, 0, SEEK_SET) == 0) {
                put_all(messages, left_out, strlen(left_out));
                put_all(messages, end ? end + 1 : line, strlen(end ? end + 1 : line));
                put_all(messages, "\n", 1);
        }
        return end ? end + 1 : line;
}

/* ---- open and close ----------------------------------------------------------------------------------------------------------------- */

static void note(const char *capability) {
        const char *text = tigetstr(capability);

        if (!text || text == (char *)-1 || strlen(text) > sizeof(way_back) - n_way_back) /* NOLINT: terminfo(3NCURSES) says so */
                return;
        memcpy(way_back + n_way_back, text, strlen(text));
        n_way_back += strlen(text);
}

/* In a handler: signal-safety(7). */
static void go_back(void) {
        if (n_way_back > 0)
                (void)!write(STDOUT_FILENO, way_back, n_way_back);
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static int fail(const Perfctl *p, const char *what) {
        const char *name = getenv("TERM");

        return perfctl_fail(p, PERFCTL_FAILED, "%s ($TERM is %s): --batch prints tables instead", what, name ? name : "not set");
}

int screen_open(const Perfctl *p) {
        int r = signals_catch_resize(p);

        if (r != 0)
                return r;
        if (tcgetattr(STDIN_FILENO, &before) < 0)
                return fail(p, "the terminal cannot be asked for its settings");
        screen = newterm(NULL, stdout, stdin);
        if (!screen)
                return fail(p, "this terminal is not known");
        (void)set_escdelay(ESCAPE_DELAY);
        n_way_back = 0;
        note("sgr0");
        note("cnorm");
        note("rmkx");
        note("rmcup");
        signals_set_last(go_back);
        if (!is_noted)
                is_noted = atexit(screen_close) == 0; /* memory may be lacking any time */
        (void)cbreak();
        (void)noecho();
        (void)nonl();
        (void)curs_set(0);
        (void)keypad(stdscr, TRUE);
        (void)nodelay(stdscr, TRUE);
        known = terminal_size(STDOUT_FILENO);
        keep_messages();
        return 0;
}

void screen_close(void) {
        if (!screen)
                return;
        (void)endwin();
        signals_set_last(NULL);
        delscreen(screen);
        screen = NULL;
        give_messages();
}

/* ---- drawing -------------------------------------------------------------------------------------------------------------------------- */

TerminalSize screen_size(void) {
        TerminalSize size = terminal_size(STDOUT_FILENO);

        if (size.rows != known.rows || size.columns != known.columns) {
                (void)resizeterm((int)size.rows, (int)size.columns);
                (void)clearok(curscr, TRUE);
                known = size;
        }
        return size;
}

void screen_begin(void) {
        (void)erase();
}

static attr_t attributes_of(ScreenStyle style) {
        static const attr_t attributes[] = { [SCREEN_PLAIN] = A_NORMAL, [SCREEN_HEADING] = A_REVERSE, [SCREEN_WARNING] = A_BOLD,
                                             [SCREEN_DIM] = A_DIM };

        return attributes[style];
}

/* As many characters as the terminal has columns for: ncurses would go on in the next row. */
static size_t fitting(const char *text, size_t n) {
        size_t at = 0, used = 0;

        while (at < n) {
                const size_t length = utf8_length(text + at, n - at) > 0 ? utf8_length(text + at, n - at) : 1;

                used += text_shown_width(text + at, length);
                if (used > known.columns)
                        break;
                at += length;
        }
        return at;
}

void screen_put_line(size_t row, ScreenStyle style, const char *text, size_t n) {
        if (row >= known.rows)
                return;
        (void)attrset((int)attributes_of(style));
        (void)mvaddnstr((int)row, 0, text, (int)fitting(text, n));
        if (style == SCREEN_HEADING)
                (void)chgat(-1, attributes_of(style), 0, NULL);
        (void)attrset(A_NORMAL);
}

void screen_end(void) {
        (void)refresh();
}

/* ---- keys ------------------------------------------------------------------------------------------------------------------------------ */

int screen_key(void) {
        static const struct {
                int theirs, ours;
        } keys[] = { { KEY_UP, SCREEN_UP }, { KEY_DOWN, SCREEN_DOWN }, { KEY_PPAGE, SCREEN_PAGE_UP }, { KEY_NPAGE, SCREEN_PAGE_DOWN },
                     { KEY_HOME, SCREEN_HOME }, { KEY_END, SCREEN_END }, { KEY_BACKSPACE, SCREEN_BACKSPACE }, { '\b', SCREEN_BACKSPACE },
                     { DELETE, SCREEN_BACKSPACE }, { KEY_ENTER, SCREEN_ENTER }, { '\r', SCREEN_ENTER }, { '\n', SCREEN_ENTER },
                     { ESCAPE, SCREEN_ESCAPE } };
        const int key = getch();

        if (key == ERR)
                return SCREEN_NONE;
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
                if (keys[i].theirs == key)
                        return keys[i].ours;
        return key < 256 ? key : SCREEN_OTHER;
}
