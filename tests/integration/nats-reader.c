/*
 * Reads a stream of JetStream from its beginning to what is its end when it starts, and writes it to stdout: of each message the
 * subject and each header as a line "NAME: VALUE", an empty line, the length of its bytes in decimal as a line, and the bytes.
 *
 * usage: nats-reader URL STREAM SUBJECT
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

int main(int argc, char **argv) {
        natsConnection *connection;
        natsSubscription *subscription;
        jsStreamInfo *info;
        jsMsgMetaData *about;
        jsSubOptions options;
        jsErrCode code;
        jsCtx *js;
        uint64_t last, sequence = 0;

        if (argc != 4)
                return 2;
        must_be_ok(natsConnection_ConnectTo(&connection, argv[1]), argv[1]);
        must_be_ok(natsConnection_JetStream(&js, connection, NULL), "JetStream");
        must_be_ok(js_GetStreamInfo(&info, js, argv[2], NULL, &code), argv[2]);
        last = info->State.LastSeq;
        must_be_ok(jsSubOptions_Init(&options), "options");
        options.Ordered = true;
        options.Stream = argv[2];
        options.Config.DeliverPolicy = js_DeliverAll;
        if (info->State.Msgs > 0)
                must_be_ok(js_SubscribeSync(&subscription, js, argv[3], NULL, &options, &code), argv[3]);
        while (info->State.Msgs > 0 && sequence < last) {
                natsMsg *m;

                must_be_ok(natsSubscription_NextMsg(&m, subscription, 20000), "the next message");
                must_be_ok(natsMsg_GetMetaData(&about, m), "what JetStream says of it");
                sequence = about->Sequence.Stream;
                jsMsgMetaData_Destroy(about);
                put(m);
                natsMsg_Destroy(m);
        }
        return fflush(stdout) == 0 ? 0 : 1;
}
