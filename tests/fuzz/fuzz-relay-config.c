/*
 * Any bytes as relay.yaml: either a configuration that keeps what relay-config.h promises, or at least one error with a place inside of
 * the file and a text that is one line.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "client/relay/endpoint.h"
#include "client/relay/relay-config.h"
#include "daemon/base/error.h"
#include "daemon/base/glob.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_rule(const RelayConfig *c, const RelayRule *rule) {
        assert(rule->name && rule->glob && rule->at.line > 0);
        assert(!rule->control || (c->control && !rule->where));
        assert(!rule->where || rule->events.n > 0);
        assert(rule->connections > 0 && (rule->bytes_per_second == 0 || rule->bytes_per_second >= 4096));
        assert(relay_rule_grants_same(rule, rule));
        (void)glob_match(rule->glob, "web1.example.org");
}

static void check_config(const RelayConfig *c) {
        assert(c->version == 1 && c->stream[0] == '/' && c->has_listen == (c->n_rules > 0));
        assert(c->has_listen || c->publish.n_routes > 0 || c->metrics_listen.n > 0);
        for (size_t i = 0; c->has_listen && i < 4; i++) {
                const char *const path = (const char *const[]){ c->certificate, c->key, c->ca, c->crl }[i];

                assert(path ? path[0] == '/' : i == 3);
        }
        for (size_t i = 0; i < c->listen.n; i++) {
                Endpoint endpoint;

                assert(endpoint_parse(c->listen.items[i], &endpoint, NULL) == 0);
        }
        for (size_t i = 0; i < c->metrics_listen.n; i++) {
                Endpoint endpoint;

                assert(endpoint_parse(c->metrics_listen.items[i], &endpoint, NULL) == 0 && endpoint_is_loopback(&endpoint));
        }
        assert(c->metrics_connections > 0 && c->metrics_request_timeout >= 100 * 1000000 && c->metrics_series >= 100);
        for (size_t i = 0; i < c->n_rules; i++)
                check_rule(c, &c->rules[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        ConfigDiagnostics m = CONFIG_DIAGNOSTICS_NULL;
        RelayConfig *c = NULL;
        int r = relay_config_parse("/etc/perfd/relay.yaml", (const char *)bytes, length, &m, &c);

        assert(r == 0 || r == REFUSED_INVALID);
        assert(config_diagnostics_finish(&m) == 0);
        assert((r == 0) == (m.n_errors == 0) && (r != 0 || c));
        for (size_t i = 0; i < m.n_items; i++)
                assert((m.items[i].line > 0) == (m.items[i].column > 0) && m.items[i].text[0] &&
                       !strpbrk(m.items[i].text, "\n\r\x1b"));
        if (c && r == 0)
                check_config(c);
        if (c)
                relay_config_free(c);
        config_diagnostics_deinit(&m);
        return 0;
}
