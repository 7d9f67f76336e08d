#include "tests/unit/supervisor-client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TURNS_MOST 10000

static bool turn(Supervisor *s) {
        bool any = operations_are_waiting(&s->operations);
        int r = operations_run(&s->operations);

        assert_true(r >= 0);
        r = sd_event_get_state(s->operations.event) == SD_EVENT_FINISHED ? 0 : sd_event_run(s->operations.event, 0);
        assert_true(r >= 0);
        return played_run_dispatcher() || any || r > 0;
}

void rig_turn(Rig *rig) {
        for (unsigned turns = 0; turn(&rig->supervisor); turns++)
                assert_true(turns < TURNS_MOST);
}

static const char *socket_path(const Rig *rig, bool may_change, struct sockaddr_un *to) {
        *to = (struct sockaddr_un){ .sun_family = AF_UNIX };
        (void)snprintf(to->sun_path, sizeof(to->sun_path), "%s/%s.sock", rig->folder, may_change ? "control" : "stream");
        return to->sun_path;
}

void rig_connect(Rig *rig, RigClient *c, bool may_change) {
        struct sockaddr_un address;
        const char *path = socket_path(rig, may_change, &address);

        *c = (RigClient){ .rig = rig };
        frame_reader_init(&c->in, FRAME_MAX_SERVER);
        if (access(path, F_OK) < 0)
                assert_int_equal(control_listen(&rig->supervisor.control, path, 0600, NULL, may_change, &rig->e), 0);
        c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_true(c->fd >= 0);
        assert_int_equal(connect(c->fd, (struct sockaddr *)&address, sizeof(address)), 0);
        rig_turn(rig);
}

void rig_close(RigClient *c) {
        close(c->fd);
        frame_reader_deinit(&c->in);
}

void rig_hang_up(RigClient *c) {
        rig_close(c);
        rig_turn(c->rig);
}

void rig_send(RigClient *c, Perfd__V1__Request *request) {
        rig_post(c, request);
        rig_turn(c->rig);
}

void rig_post(RigClient *c, Perfd__V1__Request *request) {
        uint8_t *bytes;
        size_t n;

        request->id = ++c->last_id;
        n = perfd__v1__request__get_packed_size(request);
        bytes = malloc(FRAME_HEADER_SIZE + n);
        assert_non_null(bytes);
        frame_header_put(bytes, (uint32_t)n);
        perfd__v1__request__pack(request, bytes + FRAME_HEADER_SIZE);
        assert_int_equal(send(c->fd, bytes, FRAME_HEADER_SIZE + n, MSG_NOSIGNAL), FRAME_HEADER_SIZE + n);
        free(bytes);
}

bool rig_is_answered(const RigClient *c) {
        char byte;

        return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

Perfd__V1__ServerMessage *rig_receive(RigClient *c) {
        Perfd__V1__ServerMessage *m;
        const uint8_t *message;
        size_t length;

        while (frame_reader_next(&c->in, &message, &length) != 0) {
                uint8_t *room;
                size_t size;
                ssize_t n;

                assert_int_equal(frame_reader_room(&c->in, &room, &size), 0);
                n = recv(c->fd, room, size, 0);
                if (n <= 0) /* nothing, or its end */
                        return NULL;
                frame_reader_fed(&c->in, (size_t)n);
                rig_turn(c->rig); /* there is room for more */
        }
        m = perfd__v1__server_message__unpack(NULL, length, message);
        assert_non_null(m);
        return m;
}

Perfd__V1__ServerMessage *rig_ask(RigClient *c, Perfd__V1__Request__BodyCase kind, void *message) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__ServerMessage *m;

        request.body_case = kind;
        request.status = message; /* or whichever of the union it is */
        rig_send(c, &request);
        m = rig_receive(c);
        assert_non_null(m);
        assert_int_equal(m->body_case, PERFD__V1__SERVER_MESSAGE__BODY_RESPONSE);
        assert_int_equal(m->response->id, request.id);
        return m;
}

void rig_say(RigClient *c, Perfd__V1__Request__BodyCase kind, void *message) {
        Perfd__V1__ServerMessage *m = rig_ask(c, kind, message);

        if (m->response->status != PERFD__V1__STATUS__STATUS_OK)
                fail_msg("%s: %s", m->response->reason, m->response->message);
        perfd__v1__server_message__free_unpacked(m, NULL);
}

void rig_say_refused(RigClient *c, Perfd__V1__Request__BodyCase kind, void *message, const char *reason) {
        Perfd__V1__ServerMessage *m = rig_ask(c, kind, message);

        assert_int_not_equal(m->response->status, PERFD__V1__STATUS__STATUS_OK);
        if (strcmp(m->response->reason, reason) != 0)
                fail_msg("%s, and not %s: %s", m->response->reason, reason, m->response->message);
        perfd__v1__server_message__free_unpacked(m, NULL);
}

/* ---- who it is --------------------------------------------------------------------------------------------------- */

static uint32_t uid_played;

void rig_become(uint32_t uid) {
        uid_played = uid;
}

int __real_getsockopt(int fd, int level, int option, void *to, socklen_t *size);
int __wrap_getsockopt(int fd, int level, int option, void *to, socklen_t *size);
int __wrap_getsockopt(int fd, int level, int option, void *to, socklen_t *size) {
        int r = __real_getsockopt(fd, level, option, to, size);

        if (r == 0 && level == SOL_SOCKET && option == SO_PEERCRED)
                ((struct ucred *)to)->uid = ((struct ucred *)to)->gid = uid_played;
        if (level == SOL_SOCKET && option == SO_PEERGROUPS) { /* those of who runs this */
                *size = 0;
                r = 0;
        }
        return r;
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

int rig_subscribe(Rig *rig, RigStream *s, const Perfd__V1__SubscribeRequest *q) {
        return rig_subscribe_limited(rig, s, NULL, q);
}

int rig_subscribe_limited(Rig *rig, RigStream *s, const Perfd__V1__Limit *limit, const Perfd__V1__SubscribeRequest *q) {
        Perfd__V1__Hello hello = PERFD__V1__HELLO__INIT;
        Perfd__V1__ServerMessage *m;
        int status;

        *s = (RigStream){ .is_in_order = true };
        rig_connect(rig, &s->client, false);
        hello.protocol = PERFD_PROTOCOL;
        hello.limit = (Perfd__V1__Limit *)limit;
        if (limit)
                rig_say(&s->client, PERFD__V1__REQUEST__BODY_HELLO, &hello);
        m = rig_ask(&s->client, PERFD__V1__REQUEST__BODY_SUBSCRIBE, (void *)q);
        status = (int)m->response->status;
        (void)snprintf(rig->e.text, sizeof(rig->e.text), "%s", m->response->reason);
        perfd__v1__server_message__free_unpacked(m, NULL);
        if (status != PERFD__V1__STATUS__STATUS_OK)
                rig_hang_up(&s->client);
        return status;
}

static void take_item(RigStream *s, const Perfd__V1__Item *item) {
        assert_in_range(item->cpu, PLAYED_CPU, PLAYED_CPU + RIG_CPUS - 1);
        s->n_items++;
        s->n_of_cpu[item->cpu - PLAYED_CPU]++;
        s->is_in_order &= item->time >= s->last_time;
        s->last_time = item->time;
        if (item->n_numbers > 0)
                s->last_field = item->numbers[item->n_numbers - 1];
}

static bool take_packet(RigStream *s, Perfd__V1__ServerMessage *m) {
        const Perfd__V1__Packet *p = m->packet;

        assert_int_equal(m->body_case, PERFD__V1__SERVER_MESSAGE__BODY_PACKET);
        s->has_started |= p->start != NULL;
        s->n_descriptors += p->n_events;
        s->n_removed += p->n_removed;
        for (size_t i = 0; i < p->n_items; i++)
                take_item(s, p->items[i]);
        for (size_t i = 0; i < p->n_gap; i++)
                s->n_gaps += p->gap[i]->items;
        if (!p->end)
                return false;
        (void)snprintf(s->end, sizeof(s->end), "%s", p->end->reason);
        s->closing = m;
        return true;
}

void rig_read(RigStream *s) {
        Readers *readers = &s->client.rig->supervisor.readers;
        Perfd__V1__ServerMessage *m;

        for (uint32_t slot = 0; slot < readers->n_cpus; slot++)
                if (readers->by_slot[slot].thread.started && !played_has_stopped(slot))
                        played_run_reader(&readers->by_slot[slot]);
        rig_turn(s->client.rig);
        while ((m = rig_receive(&s->client)))
                if (!take_packet(s, m))
                        perfd__v1__server_message__free_unpacked(m, NULL);
}

void rig_end(RigStream *s) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__Empty empty = PERFD__V1__EMPTY__INIT;

        request.body_case = PERFD__V1__REQUEST__BODY_STOP;
        request.stop = &empty;
        rig_send(&s->client, &request);
        rig_read(s);
        for (int i = 0; !s->closing && i < 10; i++) { /* samples of clients are waited for */
                played_let_pass(NSEC_PER_SEC);
                rig_read(s);
        }
        assert_string_equal(s->end, "stopped");
}

void rig_leave(RigStream *s) {
        if (s->closing)
                perfd__v1__server_message__free_unpacked(s->closing, NULL);
        rig_hang_up(&s->client);
}
