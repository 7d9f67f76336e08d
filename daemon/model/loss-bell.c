/* The decision to doubt is two flags: with one, main would be woken for each loss, or could not tell that there was none. */
#include "daemon/model/loss-bell.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"

int loss_bell_init(LossBell *b) {
        b->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        return b->fd < 0 ? error_origin(-errno) : 0;
}

void loss_bell_deinit(LossBell *b) {
        b->fd = close_fd(b->fd);
}

void loss_bell_ring(LossBell *b) {
        atomic_store(&b->is_noted, true);
        if (atomic_exchange(&b->is_armed, false)) {
                ssize_t n = write(b->fd, &(uint64_t){ 1 }, sizeof(uint64_t));

                assert(n == sizeof(uint64_t)); /* one at most is on its way */
        }
}

bool loss_bell_take(LossBell *b) {
        return atomic_exchange(&b->is_noted, false);
}

bool loss_bell_arm(LossBell *b) {
        atomic_store(&b->is_armed, true);
        return !atomic_load(&b->is_noted) || !atomic_exchange(&b->is_armed, false);
}

void loss_bell_quiet(LossBell *b) {
        uint64_t count;

        (void)!read(b->fd, &count, sizeof(count)); /* nothing, if main looks because a second is over */
}
