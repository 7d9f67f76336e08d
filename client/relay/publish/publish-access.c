#include "client/relay/publish/publish-access.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"

#define N_TEXTS 7

static void list_texts(const PublishAccess *a, const char *ret[static N_TEXTS]) {
        const char *const texts[N_TEXTS] = { a->ca, a->certificate, a->key, a->credentials, a->user, a->password_file, a->token_file };

        memcpy(ret, texts, sizeof(texts));
}

static int copy_text(const char *from, char **to) {
        if (!from)
                return 0;
        *to = strdup(from);
        return *to ? 0 : error_origin(-ENOMEM);
}

int publish_access_copy(const PublishAccess *a, PublishAccess *ret) {
        PublishAccess copy = { .servers = STRINGS_NULL };
        char **to[N_TEXTS] = { &copy.ca, &copy.certificate, &copy.key, &copy.credentials, &copy.user, &copy.password_file, &copy.token_file };
        const char *texts[N_TEXTS];
        int r = strings_copy(a->servers.items, a->servers.n, &copy.servers);

        list_texts(a, texts);
        for (size_t i = 0; i < N_TEXTS && r == 0; i++)
                r = copy_text(texts[i], to[i]);
        memcpy(copy.digest, a->digest, sizeof(copy.digest));
        if (r < 0)
                publish_access_deinit(&copy);
        else
                *ret = copy;
        return r;
}

void publish_access_deinit(PublishAccess *a) {
        strings_deinit(&a->servers);
        free(a->ca);
        free(a->certificate);
        free(a->key);
        free(a->credentials);
        free(a->user);
        free(a->password_file);
        free(a->token_file);
        *a = (PublishAccess){ .servers = STRINGS_NULL };
}

bool publish_access_equal(const PublishAccess *a, const PublishAccess *b) {
        const char *of_a[N_TEXTS], *of_b[N_TEXTS];
        bool is_equal = strings_equal(&a->servers, &b->servers) && memcmp(a->digest, b->digest, sizeof(a->digest)) == 0;

        list_texts(a, of_a);
        list_texts(b, of_b);
        for (size_t i = 0; i < N_TEXTS && is_equal; i++)
                is_equal = of_a[i] && of_b[i] ? strcmp(of_a[i], of_b[i]) == 0 : of_a[i] == of_b[i];
        return is_equal;
}
