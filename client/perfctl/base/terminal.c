#include "client/perfctl/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

TerminalSize terminal_size(int fd) {
        struct winsize w;

        if (ioctl(fd, TIOCGWINSZ, &w) < 0)
                w = (struct winsize){ .ws_row = 0 };
        return (TerminalSize){ .rows = w.ws_row > 0 ? w.ws_row : 24, .columns = w.ws_col > 0 ? w.ws_col : 80 };
}

static size_t stdout_width; /* 0: its own */

void terminal_set_width(size_t width) {
        stdout_width = width;
}

size_t terminal_width(int fd) {
        struct winsize w;

        if (fd == STDOUT_FILENO && stdout_width > 0)
                return stdout_width;
        if (ioctl(fd, TIOCGWINSZ, &w) < 0)
                return 0;
        return w.ws_col > 0 ? w.ws_col : 80;
}
