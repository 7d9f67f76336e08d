/* The program is perfctl_run(), which tests call too. */
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <unistd.h>

#include "client/perfctl/base/perfctl.h"

/* What is opened next would be taken for it. Nothing is read there, and writing fails, as where it is closed. */
static void fill_closed_fds(void) {
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
                        _exit(PERFCTL_FAILED);
}

int main(int argc, char **argv) {
        fill_closed_fds();
        (void)signal(SIGXFSZ, SIG_IGN); /* a file that gets too large is said, as a full disk is */
        (void)setlocale(
                LC_CTYPE,
                "C.UTF-8"); /* for wcwidth(3): all text is UTF-8, and without it wide characters count as one column */
        return perfctl_run(argc, argv);
}
