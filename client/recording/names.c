/* Numbers of the format as perf calls them. */
#include "client/recording/reading.h"

const char *perfd_recorded_name(uint32_t type) {
        switch (type) {
#define KERNEL_RECORD(number, name) \
        case number: \
                return #name;
#define PERF_RECORD(number, name) \
        case number: \
                return #name;
#include "proto/recording-format.def"
        }
        return NULL;
}

const char *perfd_feature_name(unsigned bit) {
        switch (bit) {
#define PERF_FEATURE(number, name) \
        case number: \
                return #name;
#include "proto/recording-format.def"
        }
        return NULL;
}
