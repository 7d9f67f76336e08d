/*
 * What a recording is, by its first bytes: a file, a pipe, or none; of which byte order, by the magic. Sections that lie behind the end of
 * the file are damages, and do not keep what is whole from being read. Perf of Linux before 3.1 wrote the same magic in both byte orders:
 * there the size of the attrs tells, which no sane one has when it is turned over.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "client/recording/attr.h"
#include "client/recording/damage.h"
#include "client/recording/features.h"
#include "client/recording/header.h"
#include "client/recording/tracing.h"

#define ATTR_SIZE_MIN 64    /* bytes: PERF_ATTR_SIZE_VER0 */
#define ATTR_SIZE_MAX 65536 /* bytes: more is no attr of any Linux to come */
#define TYPES_MAX ((size_t)1 << 20) /* bytes: more than any Linux has tracepoints */
#define ATTRS_AT 24 /* bytes: where the header says where they are */
#define SECTION_MAX ((size_t)256 << 20) /* bytes of attrs or ids */

typedef struct Header {
        uint64_t size, attr_size;
        Section attrs, data, types;
} Header;

static Section read_section(Bytes *b) {
        Section s = { .offset = bytes_u64(b) };

        s.size = bytes_u64(b);
        return s;
}

/* Of its bytes, those that the file has. 0; -ENOMEM */
static int section_fit(perfd_recording *r, Section *s, const char *name) {
        const uint64_t all = r->source.size, there = s->offset < all ? all - s->offset : 0;

        if (s->size <= there)
                return 0;
        if (recording_damage(r, s->offset, "%s: found %" PRIu64 " bytes in the file, expected %" PRIu64, name, there, s->size) != 0)
                return -ENOMEM;
        s->size = there;
        return 0;
}

/* ---- features ------------------------------------------------------------------------------------------------------------ */

static bool has_bit(const uint64_t *words, unsigned bit) {
        return (words[bit / 64] >> bit % 64 & 1) != 0;
}

/*
 * The bits are a row of unsigned long of the machine that wrote them. Of a 64-bit one they turn over as u64, of a 32-bit one as u32; which it
 * was, a bit tells that perf always sets. Source: perf_file_header__read().
 */
static void read_bits(perfd_recording *r, const uint8_t *from) {
        uint64_t words[PERF_DATA_FEATURES / 64];

        memcpy(words, from, sizeof(words));
        for (size_t i = 0; r->is_swapped && i < sizeof(words) / sizeof(words[0]); i++)
                words[i] = bswap_64(words[i]);
        if (r->is_swapped && !has_bit(words, PERF_DATA_FEATURE_HOSTNAME))
                for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                        words[i] = words[i] << 32 | words[i] >> 32;
        memcpy(r->features, words, sizeof(words));
}

/* Behind the data, one section for each bit. */
static int read_sections(perfd_recording *r, uint64_t at) {
        for (unsigned bit = 0; bit < PERF_DATA_FEATURES; bit++) {
                const char *name = perfd_feature_name(bit);
                Bytes b;
                int code;

                if (!recording_has(r, bit))
                        continue;
                code = recording_get(r, at, PERF_DATA_SECTION, &b);
                if (code != 0)
                        return code;
                r->sections[bit] = read_section(&b);
                if (b.failed) {
                        r->features[bit / 64] &= ~(UINT64_C(1) << bit % 64);
                        code = recording_damage(r, at, "the place of section %s is missing", name ? name : "of an unknown number");
                } else {
                        const uint64_t whole = r->sections[bit].size;

                        code = section_fit(r, &r->sections[bit], name ? name : "a section of an unknown number");
                        if (r->sections[bit].size < whole)
                                r->cut[bit / 64] |= UINT64_C(1) << bit % 64;
                }
                if (code != 0)
                        return code;
                at += PERF_DATA_SECTION;
        }
        return 0;
}

/* Newest first: what an older perf wrote names only what has no name then. */
static int name_events(perfd_recording *r, const Section *types) {
        Bytes b;
        int code = 0;

        if (recording_has(r, PERF_DATA_FEATURE_EVENT_DESC)) {
                code = feature_get(r, PERF_DATA_FEATURE_EVENT_DESC, &b);
                if (code == 0)
                        code = events_name(r, &b, 0); /* whoever visits it is told what is damaged */
        }
        if (code == 0)
                code = tracing_name_events(r);
        if (code == 0)
                code = recording_get(r, types->offset, types->size < TYPES_MAX ? (size_t)types->size : TYPES_MAX, &b);
        return code != 0 ? code : events_name_types(r, &b);
}

/* ---- attrs --------------------------------------------------------------------------------------------------------------- */

/* The attr's own size says less than the header's where it is of another version; the ids follow the attr. */
static int read_attr(perfd_recording *r, uint64_t at, uint64_t size) {
        Bytes b, ids;
        Section s;
        int code = recording_get(r, at + size, PERF_DATA_SECTION, &b);

        if (code != 0)
                return code;
        s = read_section(&b);
        if (b.failed)
                return recording_damage_of(r, &b, "the attrs");
        code = section_fit(r, &s, "ids of an attr");
        if (code == 0 && s.size > SECTION_MAX) {
                code = recording_damage(r, s.offset, "ids of an attr: found %" PRIu64 " bytes, expected at most %zu", s.size, SECTION_MAX);
                s.size = 0;
        }
        if (code == 0)
                code = recording_get(r, at, (size_t)size, &b);
        if (code != 0)
                return code;
        code = events_add(r, &b, size);
        if (code == 0)
                code = recording_get(r, s.offset, (size_t)s.size, &ids);
        return code != 0 ? code : events_take_ids(r, &ids);
}

static int read_attrs(perfd_recording *r, const Header *h) {
        const uint64_t n = h->attrs.size / h->attr_size;

        if (h->attrs.size % h->attr_size != 0 &&
            recording_damage(r, h->attrs.offset, "the attrs: found %" PRIu64 " bytes, expected a multiple of %" PRIu64, h->attrs.size,
                             h->attr_size) != 0)
                return -ENOMEM;
        if (h->attrs.size == 0 && recording_damage(r, ATTRS_AT, "the attrs: found none: whose the records are is not known") != 0)
                return -ENOMEM;
        for (uint64_t i = 0; i < n; i++) {
                int code = read_attr(r, h->attrs.offset + i * h->attr_size, h->attr_size - PERF_DATA_SECTION);

                if (code != 0)
                        return code;
        }
        return 0;
}

/* ---- a file -------------------------------------------------------------------------------------------------------------- */

static bool is_attr_size(uint64_t size) {
        return size >= ATTR_SIZE_MIN + PERF_DATA_SECTION && size <= ATTR_SIZE_MAX && size % 8 == 0;
}

/* Just before the records, in a file of ours that was not closed: *ret_at is where its sections are said. 0; -ENOMEM, -errno */
static int read_unclosed(perfd_recording *r, uint64_t data, uint64_t *ret_at) {
        const uint8_t *bits;
        Bytes b;
        int code = data < PERF_DATA_UNCLOSED_SIZE ? 0 : recording_get(r, data - PERF_DATA_UNCLOSED_SIZE, PERF_DATA_UNCLOSED_SIZE, &b);
        uint64_t rows = 0;

        memset(r->features, 0, sizeof(r->features));
        if (code != 0 || data < PERF_DATA_UNCLOSED_SIZE)
                return code;
        bits = bytes_take(&b, PERF_DATA_FEATURES / 8);
        if (!bits || bytes_u64(&b) != PERF_DATA_UNCLOSED_MAGIC)
                return 0;
        read_bits(r, bits);
        for (size_t i = 0; i < PERF_DATA_FEATURES / 64; i++)
                rows += (uint64_t)__builtin_popcountll(r->features[i]) * PERF_DATA_SECTION;
        if (rows > data - PERF_DATA_UNCLOSED_SIZE)
                memset(r->features, 0, sizeof(r->features));
        else
                *ret_at = data - PERF_DATA_UNCLOSED_SIZE - rows;
        return 0;
}

/* sections: where it is said where they are. */
static int read_data_section(perfd_recording *r, Header *h, uint64_t *ret_sections) {
        int code;

        if (h->data.size == 0 && r->source.size > h->data.offset) {
                /* whoever records writes the size when it ends */
                code = read_unclosed(r, h->data.offset, ret_sections);
                if (code != 0)
                        return code;
                r->is_unclosed = true;
                h->data.size = r->source.size - h->data.offset;
                if (recording_damage(r, 48, "the size of the data is 0: the recorder was not ended as it should be, and all that follows "
                                            "is taken for records") != 0)
                        return -ENOMEM;
        }
        return section_fit(r, &h->data, "the data");
}

static int begin_file(perfd_recording *r, Bytes *b) {
        Header h = { .size = bytes_u64(b) };
        uint64_t sections = 0;
        int code;

        h.attr_size = bytes_u64(b);
        h.attrs = read_section(b);
        h.data = read_section(b);
        h.types = read_section(b); /* names of tracepoints, until perf wrote EVENT_DESC: nothing needs them to be whole */
        if (b->failed)
                return recording_fail(r, PERFD_E_INVALID, "no perf.data: found %" PRIu64 " bytes, expected at least the %d of a header",
                                      r->source.size, PERF_DATA_HEADER_OLD_SIZE);
        if (!is_attr_size(h.attr_size))
                return recording_fail(r, PERFD_E_INVALID, "no perf.data of a known version: at byte 16, the size of attrs: found %" PRIu64
                                      ", expected %d to %d", h.attr_size, ATTR_SIZE_MIN + PERF_DATA_SECTION, ATTR_SIZE_MAX);
        if (h.size != PERF_DATA_HEADER_SIZE && h.size != PERF_DATA_HEADER_OLD_SIZE)
                return recording_fail(r, PERFD_E_INVALID, "no perf.data of a known version: at byte 8, the size of the header: found %"
                                      PRIu64 ", expected %d or %d", h.size, PERF_DATA_HEADER_SIZE, PERF_DATA_HEADER_OLD_SIZE);
        if (h.size == PERF_DATA_HEADER_SIZE) {
                const uint8_t *bits = bytes_take(b, PERF_DATA_FEATURES / 8);

                if (bits)
                        read_bits(r, bits);
                else if (recording_damage_of(r, b, "the header") != 0)
                        return -ENOMEM;
        }
        code = section_fit(r, &h.attrs, "the attrs");
        if (code == 0)
                code = read_data_section(r, &h, &sections);
        if (code == 0)
                code = read_attrs(r, &h);
        r->at = r->data = r->whole = h.data.offset;
        r->end = h.data.offset + h.data.size;
        if (code == 0)
                code = read_sections(r, sections > 0 ? sections : r->end);
        return code != 0 ? code : name_events(r, &h.types);
}

/* ---- which it is ----------------------------------------------------------------------------------------------------------- */

static bool host_is_big_endian(void) {
        return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
}

static bool read_magic(perfd_recording *r, Bytes *b) {
        uint64_t magic = bytes_u64(b), attr_size = 0;
        Bytes rest = *b;

        if (magic == PERF_DATA_MAGIC || magic == bswap_64(PERF_DATA_MAGIC))
                r->is_swapped = magic != PERF_DATA_MAGIC;
        else if (magic == PERF_DATA_MAGIC_OLD) {
                (void)bytes_u64(&rest);
                attr_size = bytes_u64(&rest);
                r->is_swapped = !is_attr_size(attr_size) && is_attr_size(bswap_64(attr_size));
        } else
                return false;
        r->is_big_endian = r->is_swapped != host_is_big_endian();
        b->swap = r->is_swapped;
        return true;
}

int recording_begin(perfd_recording *r) {
        Bytes b, size;
        int code = recording_get(r, 0, PERF_DATA_HEADER_SIZE, &b);

        if (code != 0)
                return code;
        if (!read_magic(r, &b))
                return recording_fail(r, PERFD_E_INVALID, "no perf.data: at byte 0: expected PERFILE2, or PERFFILE of Linux before 3.1");
        size = b;
        if (bytes_u64(&size) == PERF_DATA_PIPE_SIZE) {
                r->is_pipe = true;
                r->at = r->whole = PERF_DATA_PIPE_SIZE;
                r->end = r->source.size;
                return 0;
        }
        if (!source_is_seekable(&r->source))
                return recording_fail(r, PERFD_E_INVALID, "a file of perf.data in a pipe, whose parts do not follow each other: give its "
                                                          "name, or record to a pipe (-o -)");
        return begin_file(r, &b);
}
