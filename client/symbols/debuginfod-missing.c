/* Built without the header of libdebuginfod, so that nobody can be asked. */
#include "client/symbols/debuginfod.h"

int debuginfod_new(const perfd_symbolizer_options *o, Debuginfod **ret) {
        *ret = NULL;
        if (o->has_debuginfod && o->note)
                o->note(o->userdata, "debuginfod: libperfd is built without it, so that files which are not here have no names");
        return 0;
}

void debuginfod_free(Debuginfod *d) {
}

int debuginfod_get(Debuginfod *d, const BuildId *id, bool is_debug, char **ret_path) {
        return -1;
}

void debuginfod_refuse(Debuginfod *d, const BuildId *id, const char *path) {
}
