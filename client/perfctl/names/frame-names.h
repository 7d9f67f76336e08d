/*
 * For verbs that show callchains: the frames of samples by their names. A name is kept once, for as long as the FrameNames lives, so that
 * whoever adds frames up compares pointers; what is at an address of a process is found once for all samples that have it, until the
 * memory of that process changes.
 */
#pragma once

#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/names/kernel-names.h"

/* The same function of the same file has the same FrameName; with lines, one for each of its lines. Lengths are 0 for what is not known. */
typedef struct FrameName {
        perfd_text symbol, dso, build_id; /* build_id: bytes */
        perfd_text file;                  /* of the source, with lines */
        uint32_t line;                    /* in it; 0: not known */
        const char *note;                 /* why there is no symbol; "" if there is one */
} FrameName;

typedef struct NamedFrame {
        uint64_t ip;
        const FrameName *name;
        uint64_t offset;  /* bytes from the beginning of the symbol */
        uint64_t address; /* bytes from the beginning of the file; of the kernel and of JIT code: ip */
        bool is_kernel;
        bool is_inlined;  /* into the frame behind it: its offset is 0, its addresses are those of that frame */
} NamedFrame;

typedef struct FrameNames FrameNames;

/* options: NULL for those of a perfd_symbolizer. With has_lines, inlined functions are frames of their own. */
FrameNames *frame_names_new(const perfd_symbolizer_options *options);
/* NULL. */
FrameNames *frame_names_free(FrameNames *f);
/* Of the kernel's frames that have no name here, these know them; they are ended with `f`. */
void frame_names_set_kernel(FrameNames *f, KernelNames *kernel);
/* Who needs no more than that many of the innermost addresses of a callchain does not wait until the others are named. 1 or more */
void frame_names_set_max(FrameNames *f, size_t max);
/* EM_* of elf.h: whose registers are those of samples; MACHINE_OF_ITEM, as from the beginning: as the sample says. */
void frame_names_set_machine(FrameNames *f, uint32_t machine);

/* What a record that perfd_recording_next() gave last says of memory; others are no matter. */
void frame_names_feed(FrameNames *f, perfd_recording *r, const perfd_recorded *record);
/* To be told of what happens to memory, and then: of whose, UINT32_MAX for the kernel's, at that time (ns). */
perfd_symbolizer *frame_names_symbolizer(FrameNames *f);
void frame_names_changed(FrameNames *f, uint32_t pid, uint64_t time);

/*
 * One address. returns: it is where a call returns to, which may be behind the end of what called; what is named is then the call, and
 * `ip` stays as it is.
 */
void frame_names_find(FrameNames *f, uint32_t pid, uint64_t time, uint64_t ip, bool is_kernel, bool returns, NamedFrame *ret);
/*
 * The frames of a sample, the innermost first: those of the kernel, then those of the program; of one without a callchain its ip, if it has
 * one. What was inlined at an address comes before the function that it is in. A copy of the user's stack is unwound, where that shows no fewer
 * callers than the callchain. Valid until the next call.
 */
size_t frame_names_of(FrameNames *f, const perfd_item *item, const NamedFrame **ret);
/* The same of the callchain alone, and of the ip alone. */
size_t frame_names_of_callchain(FrameNames *f, const perfd_item *item, const NamedFrame **ret);
size_t frame_names_of_place(FrameNames *f, const perfd_item *item, const NamedFrame **ret);
/* Of the frames that any of them gave last: what has the same number has the same frames. 0: it has none, as most that are rare. */
uint64_t frame_names_number(const FrameNames *f);

/* What has no symbol is called by its file, as stackcollapse-perf.pl has it: "[libc.so.6]", "[unknown]" without one. malloc */
char *frame_name_of_file(perfd_text dso);
