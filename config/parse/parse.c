/* Texts that somebody has read already. */
#include "config/parse/build.h"
#include "config/parse/load.h"

int config_parse(const char *path, const char *bytes, size_t length, ConfigDiagnostics *m, Config **ret) {
        return config_parse_all(&(ConfigText){ .path = path, .bytes = bytes, .length = length }, 1, m, ret);
}

int config_parse_all(const ConfigText *texts, size_t n, ConfigDiagnostics *m, Config **ret) {
        _cleanup_(build_deinit) Build b = BUILD_NULL;
        int r = build_init(&b, m);

        for (size_t i = 0; i < n && r == 0; i++) {
                ConfigPlace file;

                r = build_add_file(&b, texts[i].path, &file);
                if (r == 0)
                        r = build_feed(&b, texts[i].bytes, texts[i].length);
        }
        return r != 0 ? r : build_finish(&b, ret);
}
