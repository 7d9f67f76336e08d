/*
 * Reads a stream of JetStream from its beginning to what is its end when it starts, and writes it to stdout: of each message the
 * subject and each header as a line "NAME: VALUE", an empty line, the length of its bytes in decimal as a line, and the bytes.
 *
 * usage: nats-reader URL STREAM SUBJECT [CA [CREDENTIALS]]   (CA '': none)
 */
#include <inttypes.h>
#include <nats/nats.h>
#include <stdio.h>
#include <stdlib.h>

static void must_be_ok(natsStatus s, const char *what) {
        const char *detail;

        if (s == NATS_OK)
                return;
        detail = nats_GetLastError(NULL);
        fprintf(stderr, "nats-reader: %s: %s, %s\n", what, natsStatus_GetText(s), detail ? detail : "");
        exit(1);
}

static void put(natsMsg *m) {
        const char **keys = NULL, *value;
        int n = 0;

        printf("subject: %s\n", natsMsg_GetSubject(m));
        (void)natsMsgHeader_Keys(m, &keys, &n); /* NATS_NOT_FOUND: none */
        for (int i = 0; i < n; i++) {
                must_be_ok(natsMsgHeader_Get(m, keys[i], &value), keys[i]);
                printf("%s: %s\n", keys[i], value);
        }
        free((void *)keys);
        printf("\n%d\n", natsMsg_GetDataLength(m));
        fwrite(natsMsg_GetData(m), 1, (size_t)natsMsg_GetDataLength(m), stdout);
}

/* 0: there is none. */
static uint64_t last_message(jsCtx *js, const char *stream) {
        jsStreamInfo *info;
        uint64_t last;

        must_be_ok(js_GetStreamInfo(&info, js, stream, NULL, NULL), stream);
        last = info->State.Msgs > 0 ? info->State.LastSeq : 0;
        jsStreamInfo_Destroy(info);
        return last;
}

static void put_all(jsCtx *js, const char *stream, const char *subject, uint64_t last) {
        natsSubscription *subscription;
        jsSubOptions options;
        uint64_t sequence = 0;

        must_be_ok(jsSubOptions_Init(&options), "options");
        options.Ordered = true;
        options.Stream = stream;
        options.Config.DeliverPolicy = js_DeliverAll;
        must_be_ok(js_SubscribeSync(&subscription, js, subject, NULL, &options, NULL), subject);
        while (sequence < last) {
                jsMsgMetaData *about;
                natsMsg *m;

                must_be_ok(natsSubscription_NextMsg(&m, subscription, 20000), "the next message");
                must_be_ok(natsMsg_GetMetaData(&about, m), "what JetStream says of it");
                sequence = about->Sequence.Stream;
                jsMsgMetaData_Destroy(about);
                put(m);
                natsMsg_Destroy(m);
        }
        (void)natsSubscription_Unsubscribe(subscription); /* Destroy() alone can crash while messages come (libnats 3.4) */
        natsSubscription_Destroy(subscription);
}

/* NULL: without it. */
static natsConnection *connect_to(const char *url, const char *ca, const char *credentials) {
        natsConnection *connection;
        natsOptions *options;

        must_be_ok(natsOptions_Create(&options), "options");
        must_be_ok(natsOptions_SetURL(options, url), url);
        if (ca && *ca)
                must_be_ok(natsOptions_LoadCATrustedCertificates(options, ca), ca);
        if (credentials)
                must_be_ok(natsOptions_SetUserCredentialsFromFiles(options, credentials, NULL), credentials);
        must_be_ok(natsConnection_Connect(&connection, options), url);
        natsOptions_Destroy(options);
        return connection;
}

int main(int argc, char **argv) {
        natsConnection *connection;
        jsCtx *js;
        uint64_t last;

        if (argc < 4 || argc > 6)
                return 2;
        connection = connect_to(argv[1], argc > 4 ? argv[4] : NULL, argc > 5 ? argv[5] : NULL);
        must_be_ok(natsConnection_JetStream(&js, connection, NULL), "JetStream");
        last = last_message(js, argv[2]);
        if (last > 0)
                put_all(js, argv[2], argv[3], last);
        jsCtx_Destroy(js);
        natsConnection_Destroy(connection);
        nats_Close();
        return fflush(stdout) == 0 ? 0 : 1;
}
