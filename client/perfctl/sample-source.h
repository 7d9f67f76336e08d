/*
 * For script, report, flame, top and export: where samples come from. A recording is read to its end; what is damaged in it, and what the
 * kernel had lost, is said on stderr behind it.
 */
#pragma once

#include "client/perfctl/frame-names.h"

typedef struct SourceSample {
        const perfd_item *item;
        const char *event;        /* its name in the recording or the stream */
        uint64_t weight;          /* how many of its event it stands for: its period, or 1 */
        const NamedFrame *frames; /* the innermost first; of a source without names none */
        size_t n_frames;
} SourceSample;

typedef struct SampleSource {
        const char *input; /* path of a recording; "-": stdin */
        perfd_recording_order order;
        bool has_names;    /* frames are named; the order must not be that of the file then */
        const char *build_ids; /* as in perfd_symbolizer_options */
        void *userdata;
        /* Each in its turn; false: no more of them are wanted. Valid until it returns. */
        bool (*take)(void *userdata, const SourceSample *sample);
        /* Events that come, before their first sample; NULL: nobody asks. */
        void (*event)(void *userdata, const perfd_recorded_event *event);
        /* Any other record of a recording, when it comes; NULL: nobody asks. */
        void (*record)(void *userdata, perfd_recording *r, const perfd_recorded *record);
        /* Behind the last one, while names of frames are still there; NULL: nobody asks. */
        void (*end)(void *userdata);
} SampleSource;

/*
 * Samples of the events that the arguments of the verb name, by globs; without arguments all. PERFCTL_OK; PERFCTL_FAILED after messages:
 * it cannot be read, or is damaged, and what is whole was given.
 */
int sample_source_run(Perfctl *p, const SampleSource *s);
