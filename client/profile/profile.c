/*
 * Frames are named once and then are numbers, so that a sample costs one hash of its numbers and one look into a table: what is read
 * bounds the rest. A stack is kept with its task, because views choose tasks; the tree is built from stacks when it is drawn
 * (stack-tree.c), which is for each stack and not for each sample.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "client/profile/profile.h"

/* Makes room for element n (from 0) of an array that grows by one, in powers of two. */
static int make_room(void **array, size_t n, size_t element_size) {
        void *grown;

        if (n > 0 && (n & (n - 1)) != 0)
                return 0;
        if (n >= PROFILE_IDS_MAX)
                return PROFILE_E_TOO_MANY;
        grown = reallocarray(*array, n > 0 ? 2 * n : 1, element_size);
        if (!grown)
                return -ENOMEM;
        *array = grown;
        return 0;
}

#define MAKE_ROOM(array, n) make_room((void **)&(array), (n), sizeof(*(array)))

Profile *profile_free(Profile *p) {
        if (!p)
                return NULL;
        for (uint32_t i = 0; i < p->n_strings; i++)
                free(p->strings[i]);
        for (size_t i = 0; i < p->n_values; i++) {
                free((char *)p->values[i].name);
                free((char *)p->values[i].unit);
        }
        free(p->strings);
        free(p->functions);
        free(p->frames);
        free(p->tasks);
        free(p->stacks);
        free(p->stack_frames);
        free(p->sums);
        id_table_deinit(&p->string_ids);
        id_table_deinit(&p->function_ids);
        id_table_deinit(&p->frame_ids);
        id_table_deinit(&p->task_ids);
        id_table_deinit(&p->stack_ids);
        free(p);
        return NULL;
}

Profile *profile_new(const ProfileValue *values, size_t n_values) {
        Profile *p = n_values > 0 && n_values <= PROFILE_VALUES_MAX ? calloc(1, sizeof(*p)) : NULL;

        if (!p)
                return NULL;
        for (; p->n_values < n_values; p->n_values++) {
                ProfileValue *v = &p->values[p->n_values];

                *v = (ProfileValue){ .name = strdup(values[p->n_values].name), .unit = strdup(values[p->n_values].unit),
                                     .period = values[p->n_values].period };
                if (!v->name || !v->unit) {
                        p->n_values++;
                        return profile_free(p);
                }
        }
        if (getrandom(&p->seed, sizeof(p->seed), GRND_NONBLOCK) != (ssize_t)sizeof(p->seed))
                p->seed = (uint64_t)(uintptr_t)p; /* early in boot: still not the same in each process */
        return p;
}

/* ---- what is named --------------------------------------------------------------------------------------------------------------- */

static int add_string(Profile *p, const char *string, uint32_t *ret_id) {
        size_t n = string ? strlen(string) + 1 : 0, at;
        uint32_t hash, id = ID_NONE;
        char *copy;
        int r;

        if (!string) {
                *ret_id = ID_NONE;
                return 0;
        }
        if (n > PROFILE_TEXT_MAX)
                return PROFILE_E_TOO_LONG;
        at = hash = id_hash(p->seed, string, n);
        while (id_table_next(&p->string_ids, hash, &at, &id))
                if (strcmp(p->strings[id], string) == 0) {
                        *ret_id = id;
                        return 0;
                }
        r = MAKE_ROOM(p->strings, p->n_strings);
        if (r != 0)
                return r;
        copy = strdup(string);
        r = copy ? id_table_add(&p->string_ids, hash, p->n_strings) : -ENOMEM;
        if (r < 0) {
                free(copy);
                return r;
        }
        p->strings[p->n_strings] = copy;
        *ret_id = p->n_strings++;
        return 0;
}

/*
 * The id of what has these bytes in an array of such, in which it is put if it was not there. What has padding is cleared before
 * it is filled.
 */
static int intern(const Profile *p, IdTable *ids, void **array, uint32_t *n, const void *bytes, size_t size, uint32_t *ret_id) {
        uint32_t hash = id_hash(p->seed, bytes, size), id;
        size_t at = hash;
        int r;

        while (id_table_next(ids, hash, &at, &id))
                if (memcmp((char *)*array + (size_t)id * size, bytes, size) == 0) {
                        *ret_id = id;
                        return 0;
                }
        r = make_room(array, *n, size);
        if (r == 0)
                r = id_table_add(ids, hash, *n);
        if (r != 0)
                return r;
        memcpy((char *)*array + (size_t)*n * size, bytes, size);
        *ret_id = (*n)++;
        return 0;
}

static int add_function(Profile *p, const ProfileFrame *frame, uint32_t *ret_function) {
        Function f;
        int r;

        memset(&f, 0, sizeof(f));
        f.kind = frame->kind;
        r = add_string(p, frame->symbol ? frame->symbol : "[unknown]", &f.symbol);
        if (r == 0)
                r = add_string(p, frame->dso, &f.dso);
        if (r == 0)
                r = add_string(p, frame->build_id, &f.build_id);
        if (r == 0)
                r = add_string(p, frame->file, &f.file);
        return r != 0 ? r : intern(p, &p->function_ids, (void **)&p->functions, &p->n_functions, &f, sizeof(f), ret_function);
}

int profile_add_frame(Profile *p, const ProfileFrame *frame, uint32_t *ret_frame) {
        Frame f;
        int r;

        memset(&f, 0, sizeof(f));
        f.line = frame->line;
        f.address = frame->address;
        r = add_function(p, frame, &f.function);
        return r != 0 ? r : intern(p, &p->frame_ids, (void **)&p->frames, &p->n_frames, &f, sizeof(f), ret_frame);
}

int profile_add_task(Profile *p, const ProfileTask *task, uint32_t *ret_task) {
        Task t;
        int r;

        memset(&t, 0, sizeof(t));
        t.pid = task->pid;
        t.tid = task->tid;
        r = add_string(p, task->comm ? task->comm : "[unknown]", &t.comm);
        if (r == 0)
                r = add_string(p, task->container, &t.container);
        return r != 0 ? r : intern(p, &p->task_ids, (void **)&p->tasks, &p->n_tasks, &t, sizeof(t), ret_task);
}

/* ---- samples --------------------------------------------------------------------------------------------------------------------- */

static uint32_t find_stack(const Profile *p, uint32_t hash, uint32_t task, const uint32_t *frames, size_t n_frames) {
        size_t at = hash;
        uint32_t id;

        while (id_table_next(&p->stack_ids, hash, &at, &id)) {
                const Stack *s = &p->stacks[id];

                if (s->task == task && s->n_frames == n_frames &&
                    (n_frames == 0 || memcmp(p->stack_frames + s->first, frames, n_frames * sizeof(*frames)) == 0))
                        return id;
        }
        return ID_NONE;
}

static int make_room_for_stack(Profile *p, size_t n_frames) {
        size_t room = p->stacks_room, frames_room = p->stack_frames_room;

        if (p->n_stacks >= PROFILE_IDS_MAX)
                return PROFILE_E_TOO_MANY;
        if (p->n_stacks == room) {
                Stack *stacks;
                uint64_t *sums;

                room = room > 0 ? 2 * room : 16;
                stacks = reallocarray(p->stacks, room, sizeof(*stacks));
                if (!stacks)
                        return -ENOMEM;
                p->stacks = stacks;
                sums = reallocarray(p->sums, room, p->n_values * sizeof(*sums));
                if (!sums)
                        return -ENOMEM;
                p->sums = sums;
                p->stacks_room = room;
        }
        if (n_frames > frames_room - p->n_stack_frames) {
                uint32_t *frames;

                frames_room = 2 * frames_room + n_frames + 64;
                frames = reallocarray(p->stack_frames, frames_room, sizeof(*frames));
                if (!frames)
                        return -ENOMEM;
                p->stack_frames = frames;
                p->stack_frames_room = frames_room;
        }
        return 0;
}

static int add_stack(Profile *p, uint32_t hash, uint32_t task, const uint32_t *frames, size_t n_frames, uint32_t *ret_stack) {
        int r;

        for (size_t i = 0; i < n_frames; i++)
                if (frames[i] >= p->n_frames)
                        return PROFILE_E_NO_ID;
        r = make_room_for_stack(p, n_frames);
        if (r == 0)
                r = id_table_add(&p->stack_ids, hash, p->n_stacks);
        if (r != 0)
                return r;
        p->stacks[p->n_stacks] = (Stack){ .task = task, .n_frames = (uint32_t)n_frames, .first = p->n_stack_frames };
        memset(p->sums + (size_t)p->n_stacks * p->n_values, 0, p->n_values * sizeof(*p->sums));
        if (n_frames > 0)
                memcpy(p->stack_frames + p->n_stack_frames, frames, n_frames * sizeof(*frames));
        p->n_stack_frames += n_frames;
        *ret_stack = p->n_stacks++;
        return 0;
}

int profile_add_stack(Profile *p, uint32_t task, const uint32_t *frames, size_t n_frames, uint32_t *ret_stack) {
        uint32_t hash;

        if (task >= p->n_tasks)
                return PROFILE_E_NO_ID;
        if (n_frames > PROFILE_DEPTH_MAX)
                return PROFILE_E_TOO_DEEP;
        hash = id_hash(p->seed ^ task, frames, n_frames * sizeof(*frames));
        *ret_stack = find_stack(p, hash, task, frames, n_frames);
        return *ret_stack == ID_NONE ? add_stack(p, hash, task, frames, n_frames, ret_stack) : 0;
}

/* No sum of a part is more than the total. */
static bool fits(const Profile *p, const uint64_t *values) {
        uint64_t total;

        for (size_t i = 0; i < p->n_values; i++)
                if (__builtin_add_overflow(p->totals[i], values[i], &total))
                        return false;
        return true;
}

int profile_add_to(Profile *p, uint32_t stack, const uint64_t *values, uint64_t wall_nsec) {
        if (stack >= p->n_stacks)
                return PROFILE_E_NO_ID;
        if (!fits(p, values))
                return PROFILE_E_OVERFLOW;
        for (size_t i = 0; i < p->n_values; i++) {
                p->sums[(size_t)stack * p->n_values + i] += values[i];
                p->totals[i] += values[i];
        }
        if (wall_nsec != 0 && (p->first_nsec == 0 || wall_nsec < p->first_nsec))
                p->first_nsec = wall_nsec;
        if (wall_nsec > p->last_nsec)
                p->last_nsec = wall_nsec;
        return 0;
}

int profile_add(Profile *p, uint32_t task, const uint32_t *frames, size_t n_frames, const uint64_t *values, uint64_t wall_nsec) {
        uint32_t stack;
        int r = fits(p, values) ? profile_add_stack(p, task, frames, n_frames, &stack) : PROFILE_E_OVERFLOW;

        return r != 0 ? r : profile_add_to(p, stack, values, wall_nsec);
}

/* The ids that another profile's frames and tasks have in this one. */
static int add_all(Profile *p, const Profile *other, uint32_t *frames, uint32_t *tasks) {
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < other->n_frames; i++) {
                const Frame *frame = &other->frames[i];
                const Function *f = &other->functions[frame->function];

                r = profile_add_frame(p, &(ProfileFrame){ .symbol = profile_string(other, f->symbol), .dso = profile_string(other, f->dso),
                                                          .build_id = profile_string(other, f->build_id),
                                                          .file = profile_string(other, f->file), .line = frame->line,
                                                          .address = frame->address, .kind = f->kind }, &frames[i]);
        }
        for (uint32_t i = 0; r == 0 && i < other->n_tasks; i++) {
                const Task *t = &other->tasks[i];

                r = profile_add_task(p, &(ProfileTask){ .comm = profile_string(other, t->comm), .pid = t->pid, .tid = t->tid,
                                                        .container = profile_string(other, t->container) }, &tasks[i]);
        }
        return r;
}

static int append_stacks(Profile *p, const Profile *other, size_t first_value, const uint32_t *frames, const uint32_t *tasks) {
        uint32_t stack[PROFILE_DEPTH_MAX];
        uint64_t values[PROFILE_VALUES_MAX] = { 0 };
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < other->n_stacks; i++) {
                const Stack *s = &other->stacks[i];

                for (uint32_t k = 0; k < s->n_frames; k++)
                        stack[k] = frames[other->stack_frames[s->first + k]];
                memcpy(values + first_value, other->sums + (size_t)i * other->n_values, other->n_values * sizeof(*values));
                r = profile_add(p, tasks[s->task], stack, s->n_frames, values, other->last_nsec);
        }
        return r;
}

int profile_append(Profile *p, const Profile *other, size_t first_value) {
        uint32_t *frames, *tasks;
        int r = -ENOMEM;

        if (first_value > p->n_values || other->n_values > p->n_values - first_value)
                return PROFILE_E_UNLIKE;
        frames = calloc((size_t)other->n_frames + 1, sizeof(*frames));
        tasks = calloc((size_t)other->n_tasks + 1, sizeof(*tasks));
        if (frames && tasks)
                r = add_all(p, other, frames, tasks);
        if (frames && tasks && r == 0)
                r = append_stacks(p, other, first_value, frames, tasks);
        free(frames);
        free(tasks);
        return r;
}

int profile_sum_functions(const Profile *p, size_t value, FunctionSum **ret_sums) {
        FunctionSum *sums = calloc((size_t)p->n_functions + 1, sizeof(*sums));
        uint32_t *seen_in = calloc((size_t)p->n_functions + 1, sizeof(*seen_in)); /* the stack, from 1 */

        if (!sums || !seen_in) {
                free(sums);
                free(seen_in);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < p->n_stacks; i++) {
                const Stack *s = &p->stacks[i];
                uint64_t sum = p->sums[(size_t)i * p->n_values + value];

                for (uint32_t k = 0; k < s->n_frames; k++) {
                        uint32_t f = p->frames[p->stack_frames[s->first + k]].function;

                        if (seen_in[f] != i + 1)
                                sums[f].total += sum;
                        seen_in[f] = i + 1;
                        if (k + 1 == s->n_frames)
                                sums[f].self += sum;
                }
        }
        free(seen_in);
        *ret_sums = sums;
        return 0;
}
