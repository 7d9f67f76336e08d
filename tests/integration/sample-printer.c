/*
 * The whole way of a record, without a daemon: from the bytes of a perf.data to a Record, to an item, through the
 * socket of a libperfd stream to a client, who prints it as `perfctl watch` does. `sample-printer FILE [--text]`; JSON
 * lines otherwise.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "client/perfctl/item/print.h"
#include "client/perfd.h"
#include "daemon/base/cleanup.h"
#include "daemon/decode/record.h"
#include "daemon/encode/item.h"
#include "tests/integration/recording.h"
#include "tests/unit/played-daemon.h"

#define ITEM_ROOM ((size_t)256 * 1024)
#define NO_EVENT SIZE_MAX

typedef struct Printer {
        uint8_t *file;
        size_t size;
        const RecordingHeader *header;
        const RecordingAttr *attrs;
        size_t n_attrs;
        SampleLayout layouts[RECORDING_MAX_ATTRS];
        EncodePlan *plans[RECORDING_MAX_ATTRS]; /* of the event attr + 1 */
        perfd_client *client;
        int daemon; /* the other end of the client's socket */
        uint64_t sequence;
        Output out;
        ItemText lines;
        bool text;
} Printer;

static void fail(const char *what) {
        fprintf(stderr, "sample-printer: %s: %s\n", what, strerror(errno));
        exit(EXIT_FAILURE);
}

static void read_file(Printer *p, const char *path) {
        FILE *f = fopen(path, "r");

        if (!f || fseek(f, 0, SEEK_END) != 0)
                fail(path);
        p->size = (size_t)ftell(f);
        rewind(f);
        p->file = malloc(p->size);
        if (!p->file || fread(p->file, 1, p->size, f) != p->size)
                fail(path);
        fclose(f);
        p->header = (const RecordingHeader *)p->file;
        if (p->size < sizeof(*p->header) || p->header->magic != RECORDING_MAGIC ||
            p->header->data.offset + p->header->data.size > p->size)
                fail("no perf.data of ours");
        p->attrs = (const RecordingAttr *)(p->file + p->header->attrs.offset);
        p->n_attrs = p->header->attrs.size / sizeof(RecordingAttr);
        for (size_t i = 0; i < p->n_attrs; i++) {
                p->plans[i] = encode_plan_new(NULL, (uint32_t)i + 1, PAYLOAD_RAW, NULL, 0);
                if (!p->plans[i] || sample_layout_init(&p->layouts[i], &p->attrs[i].attr) != 0)
                        fail("attr");
        }
}

static void on_item(void *userdata, const perfd_item *item) {
        Printer *p = userdata;

        if (p->text)
                item_print_text(&p->lines, item);
        else
                item_print_json(&p->out, NULL, item, perfd_item_time(item), true);
}

static void process(Printer *p) {
        if (perfd_client_process(p->client) != 0) {
                fprintf(stderr, "sample-printer: %s\n", perfd_client_error(p->client)->message);
                exit(EXIT_FAILURE);
        }
}

static void start(Printer *p) {
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
        Perfd__V1__StreamStart begin = PERFD__V1__STREAM_START__INIT;
        Perfd__V1__EventDescriptor events[RECORDING_MAX_ATTRS], *list[RECORDING_MAX_ATTRS];
        perfd_subscription s = PERFD_SUBSCRIPTION_INIT;
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
                fail("socketpair");
        p->daemon = fds[1];
        p->client = perfd_client_new("sample-printer");
        callbacks.item = on_item;
        play_hello(p->daemon, 1);
        play_ok(p->daemon, 2);
        if (perfd_client_connect_fd(p->client, fds[0]) != 0 || perfd_subscribe(p->client, &s, &callbacks, p) != 0)
                fail("subscribe");
        for (size_t i = 0; i < p->n_attrs; i++) {
                perfd__v1__event_descriptor__init(&events[i]);
                events[i].id = (uint32_t)i + 1;
                events[i].name = (char *)"event";
                list[i] = &events[i];
        }
        packet.sequence = ++p->sequence;
        packet.start = &begin;
        packet.events = list;
        packet.n_events = p->n_attrs;
        play_packet(p->daemon, &packet);
        process(p);
}

/* A frame of a packet that has its sequence, and the item as it is. */
static void send_item(Printer *p, const uint8_t *item, size_t length) {
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
        uint8_t head[64], *at;
        size_t n, packed;

        packet.sequence = ++p->sequence;
        packed = perfd__v1__packet__pack(&packet, head + 32);
        n = packed + length;
        at = head + FRAME_HEADER_SIZE;
        *at++ = 2 << 3 | 2; /* ServerMessage.packet */
        for (; n >= 0x80; n >>= 7)
                *at++ = (uint8_t)(n | 0x80);
        *at++ = (uint8_t)n;
        frame_header_put(head, (uint32_t)((size_t)(at - head) - FRAME_HEADER_SIZE + packed + length));
        play_bytes(p->daemon, head, (size_t)(at - head));
        play_bytes(p->daemon, head + 32, packed);
        play_bytes(p->daemon, item, length);
        process(p);
}

static size_t find_event(const Printer *p, uint64_t id) {
        for (size_t i = 0; i < p->n_attrs; i++) {
                const uint64_t *ids = (const uint64_t *)(p->file + p->attrs[i].ids.offset);

                for (size_t k = 0; k < p->attrs[i].ids.size / sizeof(*ids); k++)
                        if (ids[k] == id)
                                return i;
        }
        return NO_EVENT;
}

static void print_record(Printer *p, const uint8_t *bytes, size_t length) {
        static uint8_t item[ITEM_ROOM];
        size_t n = 0, event = NO_EVENT;
        uint64_t id;
        Record r;
        int code;

        if (record_peek_id(bytes, length, &id) == 0)
                event = find_event(p, id);
        if (event == NO_EVENT || record_decode(&p->layouts[event], bytes, length, &r) != 0) {
                fprintf(stderr, "sample-printer: a record of %zu bytes that cannot be decoded\n", length);
                exit(EXIT_FAILURE);
        }
        code = r.type == PERF_RECORD_SAMPLE ? item_encode(p->plans[event], &r, item, ITEM_ROOM, &n)
                                            : side_item_encode(&r, 0, item, ITEM_ROOM, &n);
        if (code != 0)
                fail("encode");
        send_item(p, item, n);
}

int main(int argc, char **argv) {
        static Printer p;
        const uint8_t *at, *end;

        if (argc < 2)
                return 2;
        p.text = argc > 2;
        output_init(&p.out, STDOUT_FILENO);
        p.lines = (ItemText){ .out = &p.out, .time.form = TIME_CLOCK };
        read_file(&p, argv[1]);
        start(&p);
        at = p.file + p.header->data.offset;
        for (end = at + p.header->data.size; at < end;) {
                struct perf_event_header header;

                memcpy(&header, at, sizeof(header));
                if (header.size < sizeof(header) || header.size > end - at)
                        fail("record");
                print_record(&p, at, header.size);
                at += header.size;
        }
        output_flush(&p.out);
        perfd_client_free(p.client);
        for (size_t i = 0; i < p.n_attrs; i++)
                encode_plan_unref(p.plans[i]);
        free(p.file);
        return p.out.error ? EXIT_FAILURE : EXIT_SUCCESS;
}
