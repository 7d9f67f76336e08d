#include "client/stream/stream.h"

/* One request after the other, as the socket takes them. */
int stream_send(perfd_client *c) {
        Perfd__V1__Request room = PERFD__V1__REQUEST__INIT, stop = PERFD__V1__REQUEST__INIT, *next;
        Perfd__V1__Empty empty = PERFD__V1__EMPTY__INIT;
        Stream *s = c->stream;
        int r;

        room.body_case = PERFD__V1__REQUEST__BODY_ROOM;
        stop.body_case = PERFD__V1__REQUEST__BODY_STOP;
        room.room = stop.stop = &empty;
        while ((r = client_send(c)) == 0 && !c->out && (s->room_wanted || s->stop_wanted)) {
                bool *wanted = s->stop_wanted ? &s->stop_wanted : &s->room_wanted;

                next = s->stop_wanted ? &stop : &room;
                r = client_push(c, next);
                if (r != 0)
                        return r;
                *wanted = false;
        }
        return r;
}
