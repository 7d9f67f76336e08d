/*
 * For script, report, flame, top and export: where samples come from. A recording is read to its end; what is damaged in it, and what the
 * kernel had lost, is said on stderr behind it. Samples of a live host come for a time, or until a signal, or the end of a command behind "--";
 * what was lost is said, too.
 */
#pragma once

#include "client/perfctl/events/event-words.h"
#include "client/perfctl/names/frame-names.h"
#include "client/perfctl/events/spec-options.h"
#include "client/perfctl/events/target.h"

/* In the table of a verb that may have a live source. */
#define SAMPLE_SOURCE_OPTIONS                                                                                                     \
        EVENT_OPTION(WORDS_SHOWN),                                                                                                \
        { .name = "for", .argument = "TIME", .help = "of the live host: stop after 500ms, 10s, 2m" },                           \
        { .name = "latency", .argument = "TIME", .help = "samples come within this" },                                          \
        { .name = "allow-loss", .help = "exit with 0, not 4, if samples were lost" },                                            \
        { .name = "queue", .argument = "SIZE", .help = "size of the queue in the daemon, e.g. 4MiB" },                           \
        ALL_CPUS_OPTION,                                                                                                          \
        TARGET_OPTIONS,                                                                                                           \
        SPEC_OPTIONS

typedef struct SourceSample {
        const perfd_item *item;
        const char *event;        /* its name in the recording or the stream */
        uint32_t event_number;    /* its place in the recording, from 1: several may have one name; 0: of a live host, where none have */
        uint64_t weight;          /* how many of its event it stands for: its period, or 1 */
        uint64_t wall;            /* ns since 1970; 0: of a recording that does not say it */
        const NamedFrame *frames; /* the innermost first, or the sample's own address; of a source without names none */
        size_t n_frames;
        bool is_place;            /* of a source with places: the frame is that of ip, and of no callchain */
        uint64_t frames_number;   /* as of frame_names_number(), of all samples of one source; 0: none */
} SourceSample;

typedef struct SampleChoice SampleChoice;

typedef struct SampleSource {
        const char *input; /* path of a recording; "-": stdin; NULL: the live host, and SAMPLE_SOURCE_OPTIONS */
        perfd_recording_order order; /* of a recording */
        bool has_names;    /* frames are named; the order must not be that of the file then */
        bool has_inlined;  /* with names: frames have lines, and inlined functions are frames of their own */
        size_t frames_max; /* of a callchain, without what was inlined: the innermost; 0: all */
        bool has_chains_only; /* of callchains alone: samples without one have no frame */
        bool has_places;   /* the same, but of events without fields, of which ip is all that is known, samples without a callchain have it as a frame */
        bool has_progress; /* how much of it was read is shown on stderr, if that is a terminal */
        bool has_no_chains; /* callchains are not asked for, also where there are some */
        SampleChoice *choice; /* of a recording; NULL: all samples */
        const char *build_ids; /* as in perfd_symbolizer_options */
        void *userdata;
        /* Each in its turn; false: no more of them are wanted. Valid until it returns. */
        bool (*take)(void *userdata, const SourceSample *sample);
        /* Events that come, before their first sample; NULL: nobody asks. */
        void (*event)(void *userdata, const perfd_recorded_event *event);
        /* Any other record of a recording, when it comes; NULL: nobody asks. */
        void (*record)(void *userdata, perfd_recording *r, const perfd_recorded *record);
        /* Behind the last one, while names of frames are still there, and before it is said what was lost; NULL: nobody asks. */
        void (*end)(void *userdata);

        /* Of a live host: */
        uint64_t duration; /* ns, where --for does not say another one; 0, and with a command: until it is told to end */
        const char *where; /* a predicate, as in perfd_subscription; NULL: none */
        void (*item)(void *userdata, const perfd_item *item);  /* one that is no sample; NULL: nobody asks */
        uint64_t (*tick)(void *userdata, uint64_t now);        /* as of a StreamLoop */
} SampleSource;

/*
 * With an option `input`: what says how a live host is traced says nothing of a recording. 0, or PERFCTL_USAGE after a message. means: options
 * of these that the verb takes for recordings too, ended by NULL; or NULL.
 */
int sample_source_check(const Perfctl *p, const char *const *means);
/* That there are samples and the options leave all of them out; by what, if that can be said. input: NULL for the live host */
void sample_source_tell_none(const Perfctl *p, const char *input, uint64_t n_samples);
/*
 * Samples of the events that the arguments of the verb name. Of a recording by globs, without arguments all. PERFCTL_OK; PERFCTL_FAILED after
 * messages: it cannot be read, or is damaged, and what is whole was given. Of a live host as `watch` takes them, without any of them the time
 * of all CPUs; with names, what is added has callchains unless an option says otherwise. An exit status, as that of a StreamLoop.
 */
int sample_source_run(Perfctl *p, const SampleSource *s);
