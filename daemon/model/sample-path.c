/*
 * Which path takes which samples. What each path is worth stands in ARCHITECTURE.md, Fast paths: a row goes when its figure
 * is not worth its code any more.
 */
#include "daemon/model/sample-path.h"

#include <stddef.h>

/* The best first: what a stream's samples are at least. */
static const struct {
        SamplePath path;
        RecordLayout layout;
        ItemEncoding encoding;
        RouteShape routes;
} paths[] = {
        { PATH_INTERLEAVED, RECORD_LAYOUT_BASE, ITEM_FIXED, ROUTES_ONE },
        { PATH_RUN, RECORD_LAYOUT_BASE, ITEM_FIXED, ROUTES_ONE_GROUP },
        { PATH_IN_PLACE, RECORD_LAYOUT_BASE, ITEM_VARIABLE, ROUTES_ANY },
        { PATH_GENERAL, RECORD_LAYOUT_ANY, ITEM_VARIABLE, ROUTES_ANY },
};

SamplePath sample_path(RecordLayout layout, ItemEncoding encoding, RouteShape routes) {
        size_t i = 0;

        while (layout < paths[i].layout || encoding < paths[i].encoding || routes < paths[i].routes)
                i++; /* the last row takes all */
        return paths[i].path;
}
