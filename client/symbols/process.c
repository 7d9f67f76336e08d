/*
 * A process that was forked has what its parent had at that time; the parent is asked then, and nothing is copied. Processes that were not
 * asked for longest give way when mappings take more than half of the memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/symbols/symbolizer.h"

#define FORKS_MAX 64 /* parents of parents */
#define LIVES_MAX 1024
#define FIRST_BYTES sizeof(Process)

static void take_out(perfd_symbolizer *s, Process *p) {
        *(p->newer ? &p->newer->older : &s->newest) = p->older;
        *(p->older ? &p->older->newer : &s->oldest) = p->newer;
        p->newer = p->older = NULL;
}

static void put_in(perfd_symbolizer *s, Process *p) {
        p->older = s->newest;
        *(s->newest ? &s->newest->newer : &s->oldest) = p;
        s->newest = p;
}

void process_retire(perfd_symbolizer *s, Process *p) {
        take_out(s, p);
        p->newer = s->oldest;
        *(s->oldest ? &s->oldest->older : &s->newest) = p;
        s->oldest = p;
}

static size_t bucket_of(uint32_t pid) {
        return pid * UINT32_C(2654435761) >> 20;
}

static size_t bytes_of(const AddressMap *m) {
        size_t bytes = m->room * sizeof(Mapping);

        for (size_t i = 0; i < m->n; i++)
                bytes += m->list[i].name ? strlen(m->list[i].name) + 1 : 0;
        return bytes;
}

static void drop_map(perfd_symbolizer *s, AddressMap *m) {
        s->counts.bytes -= bytes_of(m);
        s->counts.mappings -= m->n;
        for (size_t i = 0; i < m->n; i++)
                dso_unref(s, m->list[i].dso);
        address_map_deinit(m);
}

void process_free(perfd_symbolizer *s, Process *p) {
        Process **at = s->processes + bucket_of(p->pid);

        while (*at != p)
                at = &(*at)->next;
        *at = p->next;
        take_out(s, p);
        drop_map(s, &p->maps);
        drop_map(s, &p->jit);
        s->counts.bytes -= FIRST_BYTES + p->lives_room * sizeof(Life);
        s->counts.processes--;
        if (p->perf_map.table) {
                s->counts.bytes -= p->perf_map.table->bytes;
                s->table_bytes -= p->perf_map.table->bytes;
                symbol_table_deinit(p->perf_map.table);
                free(p->perf_map.table);
        }
        dso_unref(s, p->perf_map.dso);
        free(p->dump.path);
        free(p->lives);
        free(p);
        s->generation++;
}

/* The process that was added last, and the kernel, stay. */
static void make_room(perfd_symbolizer *s) {
        int kept = 0;

        while (s->counts.bytes - s->table_bytes > s->memory_max / 2 && s->oldest && s->oldest != s->newest) {
                Process *oldest = s->oldest;

                if (oldest == s->kernel_process) {
                        if (kept++ > 0)
                                break;
                        take_out(s, oldest);
                        put_in(s, oldest);
                        continue;
                }
                s->counts.forgotten += oldest->maps.n + oldest->jit.n;
                process_free(s, oldest);
        }
        dsos_make_room(s, 0, NULL);
}

Process *process_get(perfd_symbolizer *s, uint32_t pid, bool add) {
        Process **bucket = s->processes + bucket_of(pid), *p;

        for (p = *bucket; p && p->pid != pid; p = p->next)
                ;
        if (p && p != s->newest) {
                take_out(s, p);
                put_in(s, p);
        }
        if (p || !add)
                return p;
        p = calloc(1, sizeof(Process));
        if (!p)
                return NULL;
        p->pid = pid;
        p->next = *bucket;
        *bucket = p;
        put_in(s, p);
        s->counts.processes++;
        s->counts.bytes += FIRST_BYTES;
        make_room(s);
        return p;
}

int process_add_life(perfd_symbolizer *s, Process *p, const Life *life) {
        size_t at = p->n_lives;

        if (p->n_lives == LIVES_MAX) { /* what was so long ago is not asked for any more */
                memmove(p->lives, p->lives + 1, --p->n_lives * sizeof(Life));
                at--;
        } else if (p->n_lives == p->lives_room) {
                const size_t room = p->lives_room ? p->lives_room * 2 : 2;
                Life *lives = reallocarray(p->lives, room, sizeof(Life));

                if (!lives)
                        return -ENOMEM;
                s->counts.bytes += (room - p->lives_room) * sizeof(Life);
                p->lives = lives;
                p->lives_room = room;
        }
        for (; at > 0 && p->lives[at - 1].time > life->time; at--)
                p->lives[at] = p->lives[at - 1];
        p->lives[at] = *life;
        p->n_lives++;
        s->generation++;
        return 0;
}

int process_add(perfd_symbolizer *s, Process *p, AddressMap *map, const Mapping *mapping) {
        const size_t room = map->room;
        Mapping one = *mapping;

        one.order = ++s->order;
        s->generation++;
        if (map->n >= MAPPINGS_MAX || address_map_add(map, &one) != 0) {
                const bool is_full = map->n >= MAPPINGS_MAX;

                free(one.name);
                dso_unref(s, one.dso);
                s->counts.forgotten++;
                return is_full ? 0 : -ENOMEM;
        }
        s->counts.mappings++;
        s->counts.bytes += (map->room - room) * sizeof(Mapping) + (one.name ? strlen(one.name) + 1 : 0);
        make_room(s);
        return 0;
}

/* The life that it led at a time. NULL: nothing is known of its beginning. */
static const Life *find_life(const Process *p, uint64_t time, Validity *validity) {
        const Life *life = NULL;

        for (size_t i = 0; i < p->n_lives; i++) {
                if (p->lives[i].time > time) {
                        validity->until = p->lives[i].time < validity->until ? p->lives[i].time : validity->until;
                        break;
                }
                life = p->lives + i;
        }
        if (life && life->time > validity->from)
                validity->from = life->time;
        return life;
}

const Mapping *process_find(perfd_symbolizer *s, uint32_t pid, uint64_t time, uint64_t ip, bool is_jit, Validity *validity, Process **ret_owner) {
        Validity ignored = VALIDITY_ALWAYS;

        for (int i = 0; i < FORKS_MAX; i++) {
                Process *p = process_get(s, pid, false);
                const Life *life = p ? find_life(p, time, validity) : NULL;
                const Mapping *found = p ? address_map_find(is_jit ? &p->jit : &p->maps, ip, time, life ? life->time : 0, validity) : NULL;

                if (found) {
                        *ret_owner = p;
                        return found;
                }
                if (!life || life->kind != LIFE_FORK)
                        return NULL;
                pid = life->parent;
                time = life->time;
                ignored = (Validity)VALIDITY_ALWAYS; /* a parent's times are another matter */
                validity = &ignored;
        }
        return NULL;
}
