/*
 * Interleaved items, each for other channels than the one before. Most of their cost was loading the end of a packet and storing
 * it again, because a compiler has to assume that each item that is written may alias them. So the ends are kept apart while
 * items are written, and stored afterwards: those of a batch in a CursorSet, that of a merge in registers. For channels that all
 * get the same items, one pointer and constant distances to it are enough. Each item of a merge runs a step of the merge's tree
 * beside its copy (route/merge-ahead.h).
 */
#include "daemon/dispatcher/pass.h"

#include "daemon/route/merge-ahead.h"

/* The open packet, if the bits are of exactly one channel and it has one; else NULL. */
static inline Packet *pass_packet(Channel *const *by_bit, uint64_t wanted) {
        return !wanted || (wanted & (wanted - 1)) ? NULL : by_bit[(unsigned)__builtin_ctzll(wanted)]->open;
}

/*
 * Appends an item to several channels. False, with nothing done, if one of them has no open packet with room for it, or if there
 * is no channel.
 */
__attribute__((noinline)) static bool pass_to_all(Channel *const *by_bit, uint64_t wanted, const uint8_t *item, size_t length) {
        for (uint64_t m = wanted; m; m &= m - 1) {
                const Packet *p = by_bit[(unsigned)__builtin_ctzll(m)]->open;

                if (!p || length > p->capacity - p->length)
                        return false;
        }
        for (uint64_t m = wanted; m; m &= m - 1)
                (void)packet_append_one(by_bit[(unsigned)__builtin_ctzll(m)]->open, item, length);
        return wanted != 0;
}

/* Sets the cursor of one channel. NULL: the bits are of several channels, or it has no open packet. */
__attribute__((noinline)) static WriteCursor *cursor_set_lay(CursorSet *cursors, Channel *const *by_bit, uint64_t wanted) {
        Packet *p = pass_packet(by_bit, wanted);
        WriteCursor *s;

        if (!p)
                return NULL;
        s = &cursors->cursors[__builtin_ctzll(wanted)];
        *s = (WriteCursor){ .packet = p, .to = p->room + p->length, .end = p->room + p->capacity };
        cursors->bits |= wanted;
        return s;
}

static inline WriteCursor *cursor_set_sheet(CursorSet *cursors, Channel *const *by_bit, uint64_t wanted) {
        return (cursors->bits & wanted) && !(wanted & (wanted - 1)) ? &cursors->cursors[__builtin_ctzll(wanted)] :
                                                                    cursor_set_lay(cursors, by_bit, wanted);
}

void cursor_set_clear(CursorSet *cursors, uint64_t bits) {
        for (uint64_t m = cursors->bits & bits; m; m &= m - 1) {
                const WriteCursor *s = &cursors->cursors[__builtin_ctzll(m)];

                s->packet->length = (size_t)(s->to - s->packet->room);
                s->packet->n_items += s->n;
        }
        cursors->bits &= ~bits;
}

static inline bool write_cursor_write(WriteCursor *s, const uint8_t *item, size_t length) {
        uint8_t *to = s->to;

        if (length > (size_t)(s->end - to))
                return false;
        s->to = to + length;
        s->n++;
        copy_short(to, item, length);
        return true;
}

static inline bool begins_run(const BatchEntry *e, const BatchEntry *last, uint64_t bits, uint64_t wanted) {
        return e + 1 == last || (e[2].mask & bits) == wanted;
}

/*
 * Values that the loop reads for each item are in local variables, for the reason above. Two items in a row for the same channels
 * are not yet a run.
 */
const BatchEntry *pass_interleaved(const Pass *pass, CursorSet *cursors, const uint8_t *arena, const BatchEntry *e,
                                   const BatchEntry *last) {
        const TaskHints hints = pass->hints;
        Channel *const *const by_bit = pass->by_bit;
        const uint64_t bits = pass->bits;
        uint64_t next = e->mask & bits, wanted;
        uint64_t unknown = UINT64_MAX; /* channels that may need a description of `tid` */
        uint32_t tid = 0;

        for (; e < last; e++) {
                WriteCursor *s;

                wanted = next;
                next = e[1].mask & bits;
                if (next == wanted && begins_run(e, last, bits, wanted))
                        break;
                if (e->tid != tid || (wanted & unknown)) {
                        if (!task_hints_has(hints, e->tid, wanted))
                                break;
                        unknown = ~wanted & (e->tid == tid ? unknown : UINT64_MAX);
                        tid = e->tid;
                }
                s = cursor_set_sheet(cursors, by_bit, wanted);
                if (s) {
                        if (!write_cursor_write(s, arena + entry_offset(e), e->length))
                                break;
                } else {
                        cursor_set_clear(cursors, wanted);
                        if (!pass_to_all(by_bit, wanted, arena + entry_offset(e), e->length))
                                break;
                }
        }
        return e;
}

size_t pass_few(const Pass *pass, const uint8_t *arena, const BatchEntry *e, size_t n) {
        size_t i;

        for (i = 0; i < n; i++, e++) {
                uint64_t wanted = e->mask & pass->bits;

                if (!wanted && e->event != BATCH_MARKER)
                        continue;
                if (!task_hints_has(pass->hints, e->tid, wanted) ||
                    !pass_to_all(pass->by_bit, wanted, arena + entry_offset(e), e->length))
                        break;
        }
        return i;
}

/* Open packets that all get the same items, and the distance of the end of each from the end of the first. */
typedef struct Multicast {
        Packet *packets[BATCH_BITS];
        ptrdiff_t apart[BATCH_BITS];
        size_t n;
        uint8_t *to; /* end of the first packet */
        size_t room; /* bytes left in the packet that has the least */
} Multicast;

/* False: one of the channels has no open packet, or there is no channel. */
static bool multicast_open(Multicast *multicast, Channel *const *by_bit, uint64_t wanted) {
        multicast->n = 0;
        multicast->room = SIZE_MAX;
        for (uint64_t m = wanted; m; m &= m - 1) {
                Packet *p = by_bit[(unsigned)__builtin_ctzll(m)]->open;

                if (!p)
                        return false;
                if (multicast->n == 0)
                        multicast->to = p->room + p->length;
                if (p->capacity - p->length < multicast->room)
                        multicast->room = p->capacity - p->length;
                multicast->packets[multicast->n] = p;
                multicast->apart[multicast->n++] = p->room + p->length - multicast->to;
        }
        return multicast->n > 0;
}

/* Stores the new ends and counts of all packets. */
static void multicast_close(const Multicast *multicast, const uint8_t *to, size_t n_items) {
        for (size_t i = 0; i < multicast->n; i++) {
                multicast->packets[i]->length += (size_t)(to - multicast->to);
                multicast->packets[i]->n_items += n_items;
        }
}

/*
 * Appends the items that go to the same channels as the first one, which are several. Returns the first piece that was not
 * appended.
 */
__attribute__((noinline)) static const MergePiece *pass_fan(const Pass *pass, uint64_t wanted, const MergePiece *first,
                                                            const MergePiece *end, Merge *merge) {
        const TaskHints hints = pass->hints;
        const uint64_t bits = pass->bits;
        const MergePiece *piece = first;
        MergeAhead ahead;
        size_t room;
        uint8_t *to;
        Multicast multicast;

        if (!multicast_open(&multicast, pass->by_bit, wanted))
                return first;
        to = multicast.to;
        room = multicast.room;
        ahead = merge_ahead_begin(merge);
        for (; piece < end && piece->n == 1; piece++) {
                size_t length = piece->length;

                if ((piece->mask & bits) != wanted || !task_hints_has(hints, piece->tid, wanted) || length > room)
                        break;
                copy_short(to, piece->item, length);
                for (size_t i = 1; i < multicast.n; i++)
                        copy_short(to + multicast.apart[i], piece->item, length);
                to += length;
                room -= length;
                (void)merge_ahead_step(&ahead);
        }
        merge_ahead_end(&ahead);
        multicast_close(&multicast, to, (size_t)(piece - first));
        return piece;
}

/* The cursor of one open packet, as a WriteCursor, but kept in registers. */
typedef struct HotCursor {
        uint64_t bits; /* bit of the packet's channel */
        Packet *packet;
        uint8_t *to;
        size_t room, n;
} HotCursor;

#define HOT_CURSOR_NULL ((HotCursor){ .bits = UINT64_MAX }) /* has no room; an item for all 64 channels takes the general path */

static inline void hot_cursor_lift(HotCursor *hot) {
        if (hot->packet) {
                hot->packet->length = (size_t)(hot->to - hot->packet->room);
                hot->packet->n_items += hot->n;
        }
        *hot = HOT_CURSOR_NULL;
}

static inline void hot_cursor_put_on(HotCursor *hot, uint64_t bits, Packet *p) {
        hot_cursor_lift(hot);
        *hot = (HotCursor){ .bits = bits, .packet = p, .to = p->room + p->length, .room = p->capacity - p->length };
}

/* Returns the first piece that was not appended. */
__attribute__((noinline)) static const MergePiece *pass_pieces(const Pass *pass, const MergePiece *piece,
                                                               const MergePiece *end, Merge *merge) {
        const TaskHints hints = pass->hints;
        const uint64_t bits = pass->bits;
        MergeAhead ahead = merge_ahead_begin(merge);
        HotCursor hot = HOT_CURSOR_NULL;

        for (; piece < end && piece->n == 1; piece++) {
                uint64_t wanted = piece->mask & bits;
                size_t length = piece->length;

                if (wanted != hot.bits) {
                        Packet *p = pass_packet(pass->by_bit, wanted);

                        if (!wanted && piece->first->event != BATCH_MARKER)
                                continue;
                        if (p)
                                hot_cursor_put_on(&hot, wanted, p);
                        else {
                                const MergePiece *next;

                                hot_cursor_lift(&hot);
                                merge_ahead_end(&ahead);
                                next = pass_fan(pass, wanted, piece, end, merge);
                                ahead = merge_ahead_begin(merge);
                                if (next == piece)
                                        break;
                                piece = next - 1;
                                continue;
                        }
                }
                if (!task_hints_has(hints, piece->tid, wanted) || length > hot.room)
                        break;
                copy_short(hot.to, piece->item, length);
                hot.to += length;
                hot.room -= length;
                hot.n++;
                (void)merge_ahead_step(&ahead);
        }
        merge_ahead_end(&ahead);
        hot_cursor_lift(&hot);
        return piece;
}

unsigned dispatcher_pass_pieces(Dispatcher *d, StreamOrder order, uint64_t bits, const MergePiece *pieces, unsigned n) {
        const Pass pass = pass_of(d, order, 0, bits);

        return (unsigned)(pass_pieces(&pass, pieces, pieces + n, &d->merge) - pieces);
}
