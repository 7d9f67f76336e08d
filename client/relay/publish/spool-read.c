/* Reading goes by a window of a file that is as long as one record can be: what is in memory does not depend on what is on disk. */
#include <fcntl.h>
#include <string.h>

#include "client/relay/publish/spool.h"
#include "daemon/base/cleanup.h"

static bool is_at_end(const Spool *s) {
        return s->offset >= s->segments[s->cursor].size;
}

static void leave(Spool *s) {
        s->reading = close_fd(s->reading);
        s->window_begin = s->window_end = 0;
        s->offset = SPOOL_HEADER_SIZE;
        s->cursor++;
}

void spool_settle(Spool *s) {
        while (s->cursor < s->n_segments && is_at_end(s) && !(s->tail >= 0 && s->cursor == s->n_segments - 1))
                leave(s);
}

bool spool_has_unread(Spool *s) {
        spool_settle(s);
        return s->damage.length > 0 || (s->cursor < s->n_segments && !is_at_end(s));
}

/* More bytes of the file, so far as it has some. An errno. */
static int fill_window(Spool *s, const SpoolSegment *segment) {
        uint64_t at;

        memmove(s->window, s->window + s->window_begin, s->window_end - s->window_begin);
        s->window_end -= s->window_begin;
        s->window_begin = 0;
        while (s->window_end < SPOOL_RECORD_MAX && (at = s->offset + s->window_end) < segment->size) {
                size_t room = SPOOL_RECORD_MAX - s->window_end;
                ssize_t n = pread(s->reading, s->window + s->window_end, segment->size - at < room ? segment->size - at : room, (off_t)at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? errno : ENODATA;
                s->window_end += (size_t)n;
        }
        return 0;
}

static int open_segment(Spool *s, const SpoolSegment *segment) {
        char name[SPOOL_NAME_SIZE];

        if (s->reading >= 0)
                return 0;
        spool_segment_name(segment->number, name);
        s->reading = openat(s->directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        return s->reading < 0 ? errno : 0;
}

static void add_damage(Spool *s, SpoolSegment *segment, uint64_t length, int error) {
        if (s->damage.length == 0) {
                spool_segment_name(segment->number, s->damage.file);
                s->damage.offset = s->offset;
        }
        s->damage.length += length;
        s->damage.error = s->damage.error ? s->damage.error : error;
        segment->was_damaged = true;
}

static void pass(Spool *s, size_t length) {
        s->window_begin += length;
        s->offset += length;
}

/* What is said of damage is said once for all of it that is in one place. */
static int give_damage(Spool *s, SpoolDamage *ret) {
        *ret = s->damage;
        s->damage = (SpoolDamage){ .length = 0 };
        return SPOOL_E_DAMAGED;
}

/* The rest of a file that cannot be read is damage; all of it, if that is because of its header. */
static SpoolFound give_up(Spool *s, SpoolSegment *segment, int error) {
        if (segment->is_headless)
                s->offset = 0;
        add_damage(s, segment, segment->size - s->offset, error);
        s->offset = segment->size;
        s->window_begin = s->window_end = 0;
        return SPOOL_END;
}

/* What the file has at the cursor. */
static SpoolFound look(Spool *s, SpoolSegment *segment, SpoolPlace *ret) {
        int error = segment->is_headless ? 0 : open_segment(s, segment);

        while (!segment->is_headless && error == 0) {
                size_t length = s->window_end - s->window_begin;
                SpoolFound found = spool_find(s->window + s->window_begin, length, s->offset + length == segment->size, segment->salt, s->given,
                                              ret);

                if (found != SPOOL_MORE)
                        return found;
                error = fill_window(s, segment); /* then it is long enough */
        }
        return give_up(s, segment, error);
}

int spool_next(Spool *s, Message **ret, SpoolDamage *ret_damage) {
        for (;;) {
                SpoolSegment *segment;
                SpoolFound found;
                SpoolPlace place;
                int r = REFUSED_INVALID;

                if (s->damage.length > 0 && is_at_end(s))
                        return give_damage(s, ret_damage);
                if (!spool_has_unread(s))
                        return SPOOL_E_NONE;
                segment = &s->segments[s->cursor];
                found = look(s, segment, &place);
                if (found == SPOOL_END)
                        continue;
                if (found == SPOOL_RECORD && s->damage.length > 0)
                        return give_damage(s, ret_damage);
                if (found == SPOOL_RECORD && place.number > s->stored)
                        r = spool_record_get(s->window + s->window_begin, &place, ret);
                else if (found == SPOOL_RECORD)
                        r = 0; /* it is stored */
                if (r < 0)
                        return r;
                if (r > 0)
                        add_damage(s, segment, place.length, 0);
                pass(s, place.length);
                if (found == SPOOL_RECORD)
                        s->given = place.number;
                if (r == 0 && place.number > s->stored)
                        return 0;
        }
}
