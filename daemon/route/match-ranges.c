/*
 * What a program begins with, as ranges: most filters are nothing but comparisons of numbers with constants, all of which
 * must hold, and most samples fail the first of them. A range costs a reader five instructions, an instruction of a
 * program several times as many.
 *
 * The decision to doubt is that 8 bytes are loaded for a number of any width: those that end where it ends. It is their
 * highest part then, the rest is masked out, and arithmetic of 64 bits wraps where the number does, so that nothing need
 * know its width or sign. No byte before the record is read: a number that ends before the 8th one is asked as ever.
 */
#include <endian.h>

#include "daemon/route/match-program.h"

/* Of a number in a record: how wide it is and whether it has a sign. False: no such test. */
static bool test_shape(MatchOp op, unsigned *ret_bits, bool *ret_signed) {
        switch (op) {
        case MATCH_TEST_U8:
        case MATCH_TEST_S8:
                *ret_bits = 8;
                break;
        case MATCH_TEST_U16:
        case MATCH_TEST_S16:
                *ret_bits = 16;
                break;
        case MATCH_TEST_U32:
        case MATCH_TEST_S32:
                *ret_bits = 32;
                break;
        case MATCH_TEST_U64:
                *ret_bits = 64;
                break;
        default:
                return false;
        }
        *ret_signed = op == MATCH_TEST_S8 || op == MATCH_TEST_S16 || op == MATCH_TEST_S32;
        return true;
}

/*
 * low and span are of 64 bits that wrap; the numbers that there can be are those from `least` on, up to `most` more. Those
 * that are in both, as a range of `most` bits that wrap. False: there are none.
 */
static bool range_narrow(uint64_t low, uint64_t span, uint64_t least, uint64_t most, uint64_t *ret_low, uint64_t *ret_span) {
        uint64_t first = low - least, last = first + span;
        bool wraps = last < first;

        if (first > most) {
                if (!wraps)
                        return false;
                first = 0;
                wraps = false;
        }
        if (!wraps && last > most)
                last = most;
        *ret_low = (first + least) & most;
        *ret_span = (last - first) & most;
        return true;
}

/* False: it cannot be asked so. */
static bool range_init(MatchRange *q, const MatchInsn *i, uint16_t insn) {
        uint64_t keep = i->keep, least = 0, low, span, most;
        unsigned bits, shift;
        bool is_signed;

        if (__BYTE_ORDER != __LITTLE_ENDIAN || !test_shape((MatchOp)i->op, &bits, &is_signed) || i->set != 0 ||
            i->offset + bits / 8 < sizeof(uint64_t))
                return false;
        shift = 64 - bits;
        most = UINT64_MAX >> shift;
        if (is_signed && keep == UINT64_MAX)
                least = ~(most >> 1);
        else if (is_signed && keep > most)
                return false; /* parts of the sign */
        if (!range_narrow(i->low, i->span, least, most, &low, &span))
                return false;
        *q = (MatchRange){ .keep = (keep & most) << shift, .low = low << shift, .span = span << shift,
                           .at = i->offset + bits / 8 - (uint32_t)sizeof(uint64_t), .insn = insn, .base = i->base };
        return true;
}

void match_find_ranges(MatchProgram *p) {
        p->n_ranges = 0;
        for (p->rest = p->start; p->rest > MATCH_YES && p->n_ranges < MATCH_RANGES; p->n_ranges++) {
                const MatchInsn *i = &p->insns[p->rest];

                if (i->no != MATCH_NO || !range_init(&p->ranges[p->n_ranges], i, p->rest))
                        return;
                p->rest = i->yes;
        }
}
