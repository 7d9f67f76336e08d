/*
 * All files are read again as a whole, or nothing changes. Then each client is looked at by the new ones as if it came now, but that
 * it stays connected: only those that would be refused, or would get other rights, notice.
 */
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>

#include "client/relay/connection.h"
#include "client/relay/listener.h"
#include "client/relay/publish-files.h"
#include "client/relay/publish/spool-place.h"
#include "daemon/base/error.h"
#include "daemon/base/log.h"

static void say(const ConfigDiagnostic *diagnostic) {
        char text[900];

        if (!log_is_journal()) {
                config_diagnostic_print(diagnostic, stderr);
                return;
        }
        (void)config_diagnostic_text(diagnostic, text, sizeof(text));
        log_print_with(diagnostic->warning ? LOG_WARNING : LOG_ERR, MESSAGE_BAD_CONFIG, LOG_FIELDS({ "REASON", "bad-config" }), "%s",
                       text);
}

static void check_spool(const RelayConfig *config, ConfigDiagnostics *m) {
        const PublishConfig *p = &config->publish;
        Explanation e = EXPLANATION_NULL;
        uint64_t size;

        if (!p->spool_path)
                return;
        if (spool_place_check(p->spool_path, &e) > 0)
                config_diagnostics_add(m, relay_config_place(config, "publish.spool.path"), "publish.spool.path: %s", e.text);
        else if ((size = spool_place_size(p->spool_path)) < p->spool_disk)
                config_diagnostics_add_warning(m, relay_config_place(config, "publish.spool.disk"), "publish.spool.disk: the file system of %s "
                                               "has only %llu MiB, which are less", p->spool_path, (unsigned long long)(size >> 20));
}

int relay_load(const char *path, bool takes_expired, RelayConfig **ret_config, SSL_CTX **ret_tls) {
        _cleanup_(relay_config_freep) RelayConfig *config = NULL;
        ConfigDiagnostics m = CONFIG_DIAGNOSTICS_NULL;
        SSL_CTX *tls = NULL;
        int r = relay_config_load(path, &m, &config), k = 0, published;

        if (r >= 0 && config) {
                check_spool(config, &m);
                config->takes_expired = takes_expired;
                if (config->has_listen)
                        k = tls_context_new(config, &m, &tls);
                published = publish_files_check(config, &m);
                k = k < 0 || published == 0 ? k : published;
        }
        r = r < 0 || k < 0 ? (r < 0 ? r : k) : config_diagnostics_finish(&m);
        if (r == 0 && (m.n_errors > 0 || (config->has_listen && !tls)))
                r = REFUSED_INVALID;
        for (size_t i = 0; i < m.n_items; i++)
                say(&m.items[i]);
        config_diagnostics_deinit(&m);
        if (r != 0) {
                SSL_CTX_free(tls);
                return r;
        }
        *ret_config = TAKE_PTR(config);
        *ret_tls = tls;
        return 0;
}

/* By the new configuration. The connection may be gone afterwards. */
static void look_again(RelayConnection *c) {
        _cleanup_free_ char *name = NULL;
        const RelayRule *rule = NULL, *before = c->rule;
        Relay *r = c->relay;
        int k;

        c->generation = r->generation;
        c->rule = NULL; /* it is of a configuration that goes */
        if (!r->tls) {
                connection_end(c, PERFD__V1__STATUS__STATUS_DENIED, "not-permitted", "relay.yaml has no 'listen' any more");
                return;
        }
        k = tls_verify_again(c->ssl, r->tls);
        if (k != X509_V_OK) {
                connection_end(c, PERFD__V1__STATUS__STATUS_DENIED, tls_verify_reason(k), X509_verify_cert_error_string(k));
                return;
        }
        if (connection_find_rule(r->config, SSL_get0_peer_certificate(c->ssl), &rule, &name) < 0) {
                connection_lose(c, "no-memory", strerror(ENOMEM));
                return;
        }
        if (!rule) {
                connection_end(c, PERFD__V1__STATUS__STATUS_DENIED, "not-permitted", "no item of 'clients' in relay.yaml matches a name of "
                               "this certificate any more");
                return;
        }
        if (strcmp(name, c->name) != 0 || !relay_rule_grants_same(before, rule)) {
                connection_end(c, PERFD__V1__STATUS__STATUS_DENIED, "rights-changed", "what 'clients' in relay.yaml permits this client has "
                               "changed: connect again");
                return;
        }
        if (rule->bytes_per_second != before->bytes_per_second)
                token_bucket_init(&c->bucket, rule->bytes_per_second, clock_now(CLOCK_MONOTONIC));
        c->rule = rule;
}

/* One that is looked at may end, and no other: so the next one is known before. */
static void look_at_all(Relay *r) {
        for (RelayConnection *c = r->connections, *next; c; c = next) {
                next = c->next;
                if (c->state == RELAY_GREETING || c->state == RELAY_PUMPING)
                        look_again(c);
        }
}

static int refuse_reload(Relay *r, const char *reason, const char *why, int k) {
        relay_count(&r->counters.n_reloads_refused, 1);
        log_print_with(LOG_ERR, MESSAGE_RELOAD_REFUSED, LOG_FIELDS({ "REASON", reason }), "not reloaded, nothing has changed%s%s",
                       why ? ": " : "", why ? why : "");
        return k;
}

/* All that the new configuration listens on, beside what there is. Nothing is there any more of it if something cannot be. */
static int prepare(Relay *r, const RelayConfig *config, MetricsServer **ret_metrics, Explanation *e) {
        int k = 0;

        *ret_metrics = NULL;
        if (!metrics_server_is_of(r->metrics, config))
                k = metrics_server_start(config, &r->counters, &r->given, r->metrics, ret_metrics, e);
        if (k == 0)
                k = listeners_prepare(r, config, e);
        if (k != 0)
                *ret_metrics = metrics_server_stop(*ret_metrics);
        return k;
}

static void commit_metrics(Relay *r, const RelayConfig *config, MetricsServer *metrics) {
        if (metrics_server_is_of(r->metrics, config))
                return;
        metrics_server_stop(r->metrics);
        r->metrics = metrics;
}

int relay_reload(Relay *r) {
        RelayConfig *config, *old_config = r->config;
        SSL_CTX *tls, *old_tls = r->tls;
        Explanation e = EXPLANATION_NULL;
        MetricsServer *metrics;
        bool has_access;
        int k = relay_load(old_config->path, false, &config, &tls);

        if (k != 0)
                return refuse_reload(r, k > 0 ? "bad-config" : NULL, k < 0 ? error_text(k) : NULL, k);
        k = prepare(r, config, &metrics, &e);
        if (k != 0) {
                relay_config_free(config);
                SSL_CTX_free(tls);
                return refuse_reload(r, e.reason, k > 0 ? e.text : error_text(k), k);
        }
        listeners_commit(r);
        given_sockets_log_unnamed(&r->given, &config->listen, &config->metrics_listen);
        commit_metrics(r, config, metrics);
        has_access = publishing_take_access(&old_config->publish, &config->publish);
        publishing_keep(&old_config->publish, &config->publish);
        if (has_access)
                publishing_reconnect(r->publishing, &config->publish.access);
        r->config = config;
        r->tls = tls;
        r->generation++;
        atomic_store(&r->counters.certificate_end, (uint64_t)tls_own_expiry(tls));
        look_at_all(r);
        relay_config_free(old_config);
        SSL_CTX_free(old_tls);
        relay_count(&r->counters.n_reloads, 1);
        log_print(LOG_INFO, MESSAGE_RELOADED, "reloaded: %zu items of 'clients'", config->n_rules);
        return 0;
}

void relay_end_expired(Relay *r) {
        time_t now = time(NULL);

        for (RelayConnection *c = r->connections, *next; c; c = next) {
                next = c->next;
                if (connection_may_expire(c) && c->expires < now)
                        connection_end(c, PERFD__V1__STATUS__STATUS_DENIED, "expired", "the certificate of this client has expired");
        }
}
