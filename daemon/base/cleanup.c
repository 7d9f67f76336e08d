/* The one destructor that is more than a line. */
#include "daemon/base/cleanup.h"

#include <errno.h>

int close_fd(int fd) {
        if (fd >= 0) {
                int saved = errno;

                (void)close(fd); /* close(2): the fd is gone whatever it says, and nothing here writes to files */
                errno = saved;
        }
        return -1;
}
