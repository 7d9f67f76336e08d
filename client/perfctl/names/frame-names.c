/*
 * Samples repeat their addresses: of a thousand frames some ten are new. So what was found stays in a table of fixed size by process and
 * address. What it holds counts for as long as nothing has happened to the memory of that process since, and for samples that are not older
 * than what happened last: those few that are, in a recording that is not read in the order of time, are looked up each time. Whole callchains
 * are kept the same way (known-chains.c).
 */
#include "client/perfctl/names/frame-names.h"

#include <endian.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/names/kept-names.h"
#include "client/perfctl/names/known-chains.h"
#include "client/perfctl/names/recorded-host.h"

#define N_FOUND ((size_t)1 << 15)     /* a power of two */
#define N_PROCESSES ((size_t)1 << 12) /* the same: processes share one, which costs another look at most */
#define KERNEL_ADDRESS (UINT64_C(1) << 63)

/* Most samples need one that no cache has: it is one line of it. */
#define FOUND_SIZE 64

typedef struct Found {
        NamedFrame frame; /* name NULL: free */
        NamedFrame *inlined; /* what was inlined there, the innermost first */
        uint32_t n_inlined;
        uint32_t pid;
        uint32_t generation : 31; /* of the process, or of the kernel */
        uint32_t returns : 1;
        uint32_t number;     /* of it and what was inlined there; 0: nobody has asked for it alone */
} Found;
_Static_assert(sizeof(Found) == FOUND_SIZE, "Found must fit in a line of a cache: pack it");

typedef struct Memory {
        uint32_t generation; /* of 31 bits */
        uint64_t changed; /* ns: the latest that is known */
} Memory;

struct FrameNames {
        perfd_symbolizer *symbolizer;
        KernelNames *kernel; /* NULL: the symbolizer knows them, or nobody does */
        uint32_t machine;
        KeptNames names;
        Memory memory, processes[N_PROCESSES]; /* memory: the kernel's */
        bool has_lines;
        size_t max; /* addresses of a callchain that are named */
        NamedFrame *frames;
        size_t frames_room;
        KnownChains *chains;
        uint64_t number; /* of the frames that were given last; 0: they have none */
        Found passing; /* one that is not kept: until the next one */
        Found *found; /* N_FOUND, at a multiple of FOUND_SIZE in found_memory */
        void *found_memory;
};

FrameNames *frame_names_new(const perfd_symbolizer_options *options) {
        FrameNames *f = must_have(calloc(1, sizeof(*f)));

        f->symbolizer = must_have(perfd_symbolizer_new(options));
        f->chains = known_chains_new();
        f->found_memory = must_have(calloc(N_FOUND + 1, FOUND_SIZE)); /* pages that are not touched take no memory */
        f->found = (Found *)(((uintptr_t)f->found_memory + FOUND_SIZE - 1) & ~(uintptr_t)(FOUND_SIZE - 1));
        f->has_lines = options && options->has_lines;
        f->max = SIZE_MAX;
        f->machine = MACHINE_OF_ITEM;
        kept_names_init(&f->names);
        return f;
}

FrameNames *frame_names_free(FrameNames *f) {
        if (!f)
                return NULL;
        kept_names_deinit(&f->names);
        free(f->frames);
        free(f->passing.inlined);
        known_chains_free(f->chains);
        for (size_t i = 0; i < N_FOUND; i++)
                free(f->found[i].inlined);
        free(f->found_memory);
        perfd_symbolizer_free(f->symbolizer);
        kernel_names_free(f->kernel);
        free(f);
        return NULL;
}

void frame_names_set_kernel(FrameNames *f, KernelNames *kernel) {
        f->kernel = kernel;
}

void frame_names_set_max(FrameNames *f, size_t max) {
        f->max = max;
}

void frame_names_set_machine(FrameNames *f, uint32_t machine) {
        f->machine = machine;
}

/* ---- what happens to memory ----------------------------------------------------------------------------------------------------- */

perfd_symbolizer *frame_names_symbolizer(FrameNames *f) {
        return f->symbolizer;
}

static Memory *memory_of(FrameNames *f, uint32_t pid, bool is_kernel) {
        return is_kernel ? &f->memory : &f->processes[pid & (N_PROCESSES - 1)];
}

void frame_names_changed(FrameNames *f, uint32_t pid, uint64_t time) {
        Memory *m = memory_of(f, pid, pid == UINT32_MAX);

        m->generation = (m->generation + 1) & INT32_MAX;
        if (time > m->changed)
                m->changed = time;
}

static bool is_of_memory(const perfd_recorded *record) {
        switch (record->type) {
        case PERF_RECORD_MMAP:
        case PERF_RECORD_MMAP2:
        case PERF_RECORD_FORK:
        case PERF_RECORD_KSYMBOL:
                return true;
        case PERF_RECORD_COMM:
                return record->misc & PERF_RECORD_MISC_COMM_EXEC;
        default:
                return false;
        }
}

void frame_names_feed(FrameNames *f, perfd_recording *r, const perfd_recorded *record) {
        perfd_recorded_id id = { .time = 0 };
        uint32_t pid;

        must_be_done(perfd_symbolizer_feed(f->symbolizer, r, record));
        if (!is_of_memory(record) || record->size < sizeof(pid))
                return;
        (void)perfd_recording_id(r, record, &id); /* without a time it was there from the beginning */
        memcpy(&pid, record->bytes, sizeof(pid)); /* of the kernel's own mappings UINT32_MAX */
        pid = perfd_recording_byte_order(r) == PERFD_BIG_ENDIAN ? be32toh(pid) : le32toh(pid);
        frame_names_changed(f, record->type == PERF_RECORD_KSYMBOL ? UINT32_MAX : pid, id.time);
}

/* ---- frames --------------------------------------------------------------------------------------------------------------------- */

/* The first of two places. */
static Found *found_of(FrameNames *f, uint32_t pid, uint64_t ip) {
        return &f->found[((ip ^ (uint64_t)pid << 40) * UINT64_C(0x9e3779b97f4a7c15)) >> 50 << 1];
}

_Static_assert(N_FOUND == (size_t)1 << (64 - 50 + 1), "found_of() takes as many bits of its hash");

static bool is_found(const Found *found, uint32_t whose, uint64_t ip, uint32_t generation, bool returns) {
        return found->frame.name && found->frame.ip == ip && found->pid == whose && found->generation == generation && found->returns == returns;
}

/* NULL: it has to be looked up. */
static Found *find_kept(FrameNames *f, uint32_t whose, uint64_t ip, uint32_t generation, bool returns) {
        Found *found = found_of(f, whose, ip);

        if (is_found(found, whose, ip, generation, returns))
                return found;
        return is_found(found + 1, whose, ip, generation, returns) ? found + 1 : NULL;
}

static NamedFrame *frames_for(FrameNames *f, size_t n) {
        if (n > f->frames_room) {
                f->frames_room = 2 * n + 64;
                f->frames = must_have(reallocarray(f->frames, f->frames_room, sizeof(*f->frames)));
        }
        return f->frames;
}

static NamedFrame named(FrameNames *f, const perfd_frame *frame, const Found *of, bool is_inlined) {
        return (NamedFrame){ .ip = of->frame.ip, .name = kept_names_add(&f->names, frame), .offset = is_inlined ? 0 : frame->offset + of->returns,
                             .address = frame->address + of->returns, .is_kernel = of->frame.is_kernel, .is_inlined = is_inlined };
}

/* Fills in what the symbolizer knows of found->frame.ip. Whether it may be kept. */
static bool look_up(FrameNames *f, uint32_t pid, uint64_t time, Found *found) {
        const perfd_frame *frames;
        perfd_frame frame;
        size_t n = 1;

        if (f->has_lines)
                must_be_done(perfd_symbolizer_find_inlined(f->symbolizer, pid, time, found->frame.ip - found->returns, found->frame.is_kernel,
                                                           &frames, &n));
        else {
                must_be_done(perfd_symbolizer_find(f->symbolizer, pid, time, found->frame.ip - found->returns, found->frame.is_kernel, &frame));
                frames = &frame;
        }
        if (f->kernel && found->frame.is_kernel && frames[n - 1].symbol.length == 0) {
                frame = frames[n - 1];
                (void)kernel_names_find(f->kernel, found->frame.ip - found->returns, &frame);
                frames = &frame; /* of what has no name nothing is inlined */
                n = 1;
        }
        found->n_inlined = (uint32_t)(n - 1);
        found->inlined = n > 1 ? must_have(calloc(n - 1, sizeof(*found->inlined))) : NULL;
        for (size_t i = 0; i + 1 < n; i++)
                found->inlined[i] = named(f, &frames[i], found, true);
        found->frame = named(f, &frames[n - 1], found, false);
        /* What a JIT compiler has made, of no file, may get its name later. */
        return frames[n - 1].symbol.length > 0 || frames[n - 1].build_id.length > 0;
}

/* What may be found again goes to its place, from where the one that is there moves to the second; all else stays until the next call only. */
static Found *find_new(FrameNames *f, uint64_t time, const Found *asked, const Memory *m) {
        Found *place = found_of(f, asked->pid, asked->frame.ip), new = *asked;

        if (!look_up(f, asked->pid, time, &new) || time < m->changed) {
                free(f->passing.inlined);
                f->passing = new;
                return &f->passing;
        }
        free(place[1].inlined);
        place[1] = place[0];
        place[0] = new;
        return place;
}

/* Until the next call. */
static Found *find(FrameNames *f, uint32_t pid, uint64_t time, uint64_t ip, bool is_kernel, bool returns) {
        const uint32_t whose = is_kernel ? UINT32_MAX : pid;
        const Memory *m = memory_of(f, pid, is_kernel);
        Found *found = time >= m->changed ? find_kept(f, whose, ip, m->generation, returns) : NULL;

        return found ? found : find_new(f, time, &(Found){ .frame = { .ip = ip, .is_kernel = is_kernel }, .pid = whose,
                                                           .generation = m->generation, .returns = returns }, m);
}

void frame_names_find(FrameNames *f, uint32_t pid, uint64_t time, uint64_t ip, bool is_kernel, bool returns, NamedFrame *ret) {
        *ret = find(f, pid, time, ip, is_kernel, returns)->frame;
}

/* Behind the n that are there. How many there are then. */
static size_t add_frames(FrameNames *f, size_t n, const Found *found) {
        NamedFrame *frames = frames_for(f, n + found->n_inlined + 1);

        if (found->n_inlined > 0)
                memcpy(&frames[n], found->inlined, found->n_inlined * sizeof(*frames));
        frames[n + found->n_inlined] = found->frame;
        return n + found->n_inlined + 1;
}

static size_t lower(size_t a, size_t b) {
        return a < b ? a : b;
}

/* All that is not known of a callchain is asked for at once: each question is a round trip. */
static void want_kernel(FrameNames *f, const uint64_t *kernel, size_t n, uint64_t time) {
        uint64_t wanted[256]; /* more of one callchain are asked for in turn */
        size_t n_wanted = 0;

        for (size_t i = 0; i < n && n_wanted < sizeof(wanted) / sizeof(wanted[0]); i++) {
                if (time < f->memory.changed || !find_kept(f, UINT32_MAX, kernel[i], f->memory.generation, i > 0))
                        wanted[n_wanted++] = kernel[i] - (i > 0);
        }
        kernel_names_want(f->kernel, wanted, n_wanted);
}

/* The kernel follows frame pointers, which few programs have; or it was told not to. 0: no more than those n are known. */
static size_t unwind(FrameNames *f, const perfd_item *item, size_t n, const perfd_caller **ret) {
        const perfd_registers *sampled = perfd_item_has_more(item) ? perfd_item_user_registers(item) : NULL;
        perfd_registers registers;
        size_t n_unwound;

        if (!sampled || perfd_item_user_stack(item).length == 0)
                return 0;
        registers = *sampled;
        if (f->machine != MACHINE_OF_ITEM)
                registers.machine = f->machine;
        must_be_done(perfd_symbolizer_unwind(f->symbolizer, perfd_item_pid(item), perfd_item_time(item), &registers, perfd_item_user_stack(item),
                                             ret, &n_unwound));
        return n_unwound < n ? 0 : n_unwound;
}

/* Whether all of them will be the same, as long as the memory is. */
static bool find_chain(FrameNames *f, const ChainKey *key, uint64_t time, size_t *ret_n) {
        bool may_keep = true;
        size_t n = 0;

        if (f->kernel && key->n_kernel > 0)
                want_kernel(f, key->kernel, key->n_kernel, time);
        for (size_t i = 0; i < key->n_kernel; i++) {
                const Found *found = find(f, key->pid, time, key->kernel[i], true, i > 0);

                may_keep = may_keep && found != &f->passing;
                n = add_frames(f, n, found);
        }
        for (size_t i = 0; i < key->n_user; i++) { /* where the program enters the kernel, it returns behind the instruction */
                const Found *found = find(f, key->pid, time, key->user[i], false, i > 0);

                may_keep = may_keep && found != &f->passing;
                n = add_frames(f, n, found);
        }
        *ret_n = n;
        return may_keep;
}

/* One address alone is not copied. */
static size_t one_frame(FrameNames *f, Found *found, const NamedFrame **ret) {
        size_t n;

        if (found->number == 0 && found != &f->passing)
                found->number = known_chains_next_number(f->chains);
        f->number = found->number;
        if (found->n_inlined == 0) {
                *ret = &found->frame;
                return 1;
        }
        n = add_frames(f, 0, found);
        *ret = f->frames;
        return n;
}

static size_t frame_of_one(FrameNames *f, const ChainKey *key, uint64_t time, const NamedFrame **ret) {
        if (f->kernel && key->n_kernel > 0)
                want_kernel(f, key->kernel, 1, time);
        return one_frame(f, key->n_kernel > 0 ? find(f, key->pid, time, key->kernel[0], true, false) :
                                                find(f, key->pid, time, key->user[0], false, false), ret);
}

static size_t chain_frames(FrameNames *f, const ChainKey *chain, uint64_t time, const NamedFrame **ret) {
        const Memory *kernel = memory_of(f, chain->pid, true), *process = memory_of(f, chain->pid, false);
        const bool may_know = known_chains_may_keep(chain) && time >= kernel->changed && time >= process->changed;
        ChainKey key = *chain;
        KnownChain known;
        size_t n;

        key.generation = process->generation;
        key.kernel_generation = kernel->generation;
        if (may_know && known_chains_find(f->chains, &key, &known)) {
                f->number = known.number;
                *ret = known.frames;
                return known.n;
        }
        if (find_chain(f, &key, time, &n) && may_know)
                f->number = known_chains_keep(f->chains, &key, f->frames, n);
        *ret = f->frames;
        return n;
}

size_t frame_names_of_callchain(FrameNames *f, const perfd_item *item, const NamedFrame **ret) {
        const uint32_t pid = perfd_item_pid(item);
        const uint64_t time = perfd_item_time(item);
        const uint64_t *kernel, *user;
        const size_t n_kernel = lower(perfd_item_callchain(item, PERFD_CALLCHAIN_KERNEL, &kernel), f->max);
        const size_t n_all = perfd_item_callchain(item, PERFD_CALLCHAIN_USER, &user), room = f->max - n_kernel;
        const perfd_caller *callers;
        const size_t n_callers = room > 0 ? lower(unwind(f, item, n_all, &callers), room) : 0;
        const size_t n_user = n_callers > 0 ? 0 : lower(n_all, room);
        const ChainKey key = { .kernel = kernel, .user = user, .n_kernel = (uint32_t)n_kernel, .n_user = (uint32_t)n_user, .pid = pid };
        size_t n;

        f->number = 0;
        n = n_kernel + n_user == 1 ? frame_of_one(f, &key, time, ret) : chain_frames(f, &key, time, ret);
        if (n_callers == 0)
                return n;
        frames_for(f, n);
        if (n > 0 && *ret != f->frames)
                memcpy(f->frames, *ret, n * sizeof(**ret));
        f->number = 0;
        for (size_t i = 0; i < n_callers; i++)
                n = add_frames(f, n, find(f, pid, time, callers[i].ip, false, callers[i].returns));
        *ret = f->frames;
        return n;
}

uint64_t frame_names_number(const FrameNames *f) {
        return f->number;
}

size_t frame_names_of_place(FrameNames *f, const perfd_item *item, const NamedFrame **ret) {
        const uint64_t ip = perfd_item_ip(item);

        f->number = 0;
        if (ip == 0)
                return 0;
        return one_frame(f, find(f, perfd_item_pid(item), perfd_item_time(item), ip, ip >= KERNEL_ADDRESS, false), ret);
}

size_t frame_names_of(FrameNames *f, const perfd_item *item, const NamedFrame **ret) {
        size_t n = frame_names_of_callchain(f, item, ret);

        return n > 0 ? n : frame_names_of_place(f, item, ret);
}

char *frame_name_of_file(perfd_text dso) {
        const char *slash = dso.length > 0 ? strrchr(dso.bytes, '/') : NULL, *file = slash ? slash + 1 : dso.bytes;
        char *name;

        if (dso.length == 0)
                return must_have(strdup("[unknown]" /* as perf-report(1) has it */));
        if (*file == '[')
                return must_have(strdup(file));
        name = must_have(malloc(strlen(file) + 3));
        (void)stpcpy(stpcpy(stpcpy(name, "["), file), "]");
        return name;
}
