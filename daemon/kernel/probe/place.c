/*
 * A path is looked up once, into an O_PATH fd, and everything after that is about this fd: an offset of one file put
 * into another, because a package was upgraded in between, would be a breakpoint in the middle of an instruction of a
 * running program. Below /proc/PID/root a link that begins with a slash is one of that process's file system, as the
 * process itself would follow it, and not of ours.
 */
#include "daemon/kernel/probe/place.h"

#include "config/text/words.h"
#include "daemon/base/checkpoint.h"
#include "daemon/base/cleanup.h"
#include "daemon/kernel/elf/file.h"
#include "daemon/kernel/host/file-access.h"
#include "daemon/kernel/symbol/kernel-symbols.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

DEFINE_CLEANUP(ElfFile *, elf_file_close)
DEFINE_CLEANUP(KernelSymbolList *, kernel_symbol_list_unref)

void probe_places_deinit(ProbePlaces *p) {
        for (size_t i = 0; i < p->n_sites; i++)
                free(p->sites[i].args);
        free(p->sites);
        strings_deinit(&p->symbols);
        free(p->label);
        free(p->text);
        free(p->path);
        close_fd(p->fd);
        *p = PROBE_PLACES_NULL;
}

static int add_site(ProbePlaces *p, uint64_t offset, uint64_t semaphore, char *args) {
        ProbeSite *more = reallocarray(p->sites, p->n_sites + 1, sizeof(*more));

        if (!more) {
                free(args);
                return error_origin(-ENOMEM);
        }
        p->sites = more;
        more[p->n_sites++] = (ProbeSite){ .offset = offset, .semaphore = semaphore, .args = args };
        return 0;
}

static bool is_known_site(const ProbePlaces *p, const ProbeSite *s) {
        for (size_t i = 0; i < p->n_sites; i++)
                if (strcmp(p->sites[i].args ?: "", s->args ?: "") == 0)
                        return true;
        return false;
}

void probe_places_keep_different(ProbePlaces *p, size_t most) {
        size_t n = p->n_sites;

        if (n <= most)
                return;
        p->n_sites = 0;
        for (size_t i = 0; i < n; i++)
                if (p->n_sites < most && !is_known_site(p, &p->sites[i]))
                        p->sites[p->n_sites++] = p->sites[i];
                else
                        free(p->sites[i].args);
}

int probe_places_take_symbol(ProbePlaces *p, const char *symbol, const char *inside) {
        uint64_t offset = p->sites[0].offset;
        char *label = NULL, *text = NULL;
        int n;

        if (symbol && offset == 0)
                n = asprintf(&text, "%s", symbol);
        else if (symbol)
                n = asprintf(&text, "%s+0x%" PRIx64, symbol, offset);
        else
                n = asprintf(&text, "0x%" PRIx64 "%s%s%s", offset, inside ? " (" : "", inside ?: "", inside ? ")" : "");
        if (n < 0)
                return error_origin(-ENOMEM);
        n = symbol ? asprintf(&label, "%s", symbol) : asprintf(&label, "0x%" PRIx64, offset);
        if (n < 0) {
                free(text);
                return error_origin(-ENOMEM);
        }
        free(p->label);
        free(p->text);
        p->label = label;
        p->text = text;
        return 0;
}

/* The first alternate, at its begin: then there is nothing to read. */
static bool is_known_once(const ProbePlace *place, const KernelSymbolIndex *index, uint64_t modules) {
        return place->n_symbols > 0 && place->offset == 0 &&
               kernel_symbol_index_has(index, modules, place->symbols[0]);
}

/* All alternates: then all that is left to say is what is like them. */
static bool is_known_missing(const ProbePlace *place, const KernelSymbolIndex *index, uint64_t modules) {
        for (size_t i = 0; i < place->n_symbols; i++)
                if (!kernel_symbol_index_lacks(index, modules, place->symbols[i]))
                        return false;
        return place->n_symbols > 0;
}

/*
 * Where the kernel lies is hidden from who may not read it in /proc/kallsyms (kernel.kptr_restrict), whatever perfd may: what would
 * differ with it has one answer. Names of functions are in every kernel's package.
 */
static int refuse_address(Explanation *e) {
        return refuse(e, REFUSED_DENIED, "no-permission", "only clients of the control socket may probe an address of the "
                "kernel, or an offset that is not known to be inside its function: name a function, such as kprobe:vfs_read");
}

static int check_client(const ProbePlace *place, const Credentials *client, Explanation *e) {
        return client && place->n_symbols == 0 ? refuse_address(e) : 0;
}

/* What reading the list has said, for the client: no address is in it. */
static int refuse_to_client(int r, const ProbePlace *place, const Credentials *client, Explanation *e) {
        if (!client || r < 0 || (r == KERNEL_SYMBOLS_E_HIDDEN && place->offset == 0))
                return r;
        if (r == KERNEL_SYMBOLS_E_HIDDEN || (e && strcmp(e->reason, "bad-address") == 0))
                return refuse_address(e);
        if (e && strcmp(e->reason, "ambiguous-symbol") == 0)
                return refuse(e, r, "ambiguous-symbol", "several functions of this kernel are called %s: give the full name of "
                        "one of them", QUOTE(place->symbols[0]));
        return r;
}

/* What the list says of it: the symbol, and where it is given or needed, what is at the place. */
static int find_in_list(const ProbePlace *place, KernelSymbolIndex *index, uint64_t modules, const KernelSymbolList *list,
                        ProbePlaces *p, char *ret_inside, Explanation *e) {
        const bool is_symbol = place->n_symbols > 0;
        char symbol[KERNEL_SYMBOL_SIZE];
        int r = kernel_symbol_index_add(index, modules, list->text, list->length, e);

        if (r != 0)
                return r;
        if (is_known_missing(place, index, modules))
                return kernel_symbols_refuse_unknown(list->text, list->length, place->symbols, place->n_symbols, &index->hints, e);
        if (is_symbol)
                r = kernel_symbols_find(list->text, list->length, place->symbols, place->n_symbols, &index->hints, symbol, e);
        if (r == 0 && is_symbol)
                r = strings_add(&p->symbols, symbol);
        if (r == 0 && (!is_symbol || place->offset > 0))
                r = kernel_symbols_check(list->text, list->length, is_symbol ? symbol : NULL, p->sites[0].offset, ret_inside, e);
        return r;
}

static int look_up(const ProbePlace *place, KernelSymbolIndex *index, const Credentials *client, ProbePlaces *p, Explanation *e) {
        _cleanup_(kernel_symbol_list_unrefp) KernelSymbolList *list = NULL;
        const uint64_t modules = kernel_symbol_index_modules("");
        char inside[KERNEL_SYMBOL_TEXT_SIZE] = "";
        int r;

        if (is_known_once(place, index, modules)) {
                p->is_known = true;
                r = strings_add(&p->symbols, place->symbols[0]);
                return r < 0 ? r : probe_places_take_symbol(p, place->symbols[0], NULL);
        }
        if (index->hints == 0 && is_known_missing(place, index, modules))
                return kernel_symbols_refuse_unknown(NULL, 0, place->symbols, place->n_symbols, &index->hints, e);
        r = kernel_symbol_index_list(index, modules, KERNEL_SYMBOLS_PATH, &list, e);
        p->is_known = r == 0 || place->n_symbols == 0;
        if (r == 0)
                r = find_in_list(place, index, modules, list, p, inside, e);
        if (r != 0)
                r = refuse_to_client(r, place, client, e);
        if (r != 0 && r != KERNEL_SYMBOLS_E_HIDDEN) /* then only the kernel knows */
                return r;
        if (!p->is_known) {
                r = strings_copy(place->symbols, place->n_symbols, &p->symbols);
                if (r < 0)
                        return r;
        }
        return probe_places_take_symbol(p, place->n_symbols > 0 ? p->symbols.items[0] : NULL, *inside ? inside : NULL);
}

static int find_in_kernel(const ProbePlace *place, KernelSymbolIndex *index, const Credentials *client, ProbePlaces *p,
                          Explanation *e) {
        KernelSymbolIndex own = KERNEL_SYMBOL_INDEX_NULL;
        int r = check_client(place, client, e);

        if (r != 0)
                return r;
        r = add_site(p, place->n_symbols > 0 ? place->offset : place->address, 0, NULL);
        if (r == 0)
                r = look_up(place, index ? index : &own, client, p, e);
        kernel_symbol_index_deinit(&own);
        return r;
}

/* 0 or -errno. */
static int open_path(const char *path, int *ret_fd) {
        struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
        _cleanup_free_ char *root = NULL;
        _cleanup_close_ int root_fd = -1;
        int fd, n = 0;

        if (sscanf(path, "/proc/%*[0-9]/root/%n", &n) == 0 && n > 0) {
                root = strndup(path, (size_t)n);
                if (!root)
                        return error_origin(-ENOMEM);
                root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
                if (root_fd < 0)
                        return error_origin(-errno);
                fd = (int)syscall(SYS_openat2, root_fd, path + n, &how, sizeof(how));
                if (fd >= 0 || errno != ENOSYS) { /* Linux 5.6 */
                        *ret_fd = fd;
                        return fd < 0 ? error_origin(-errno) : 0;
                }
        }
        fd = open(path, O_PATH | O_CLOEXEC);
        if (fd < 0)
                return error_origin(-errno);
        *ret_fd = fd;
        return 0;
}

static bool is_same_file(int fd, dev_t device, ino_t inode) {
        struct stat s;

        return fstat(fd, &s) == 0 && s.st_dev == device && s.st_ino == inode;
}

bool probe_places_is_same_file(const ProbePlaces *p) {
        struct stat s;

        return stat(p->path, &s) == 0 && is_same_file(p->fd, s.st_dev, s.st_ino);
}

static int open_file(ProbePlaces *p, ElfFile **ret, Explanation *e) {
        _cleanup_(elf_file_closep) ElfFile *f = NULL;
        dev_t device;
        ino_t inode;
        int r = open_path(p->path, &p->fd), error = -r;

        if (r == 0 && !probe_places_is_same_file(p)) /* a link in another root */
                return elf_file_open_fd(p->fd, p->path, ret, e);
        r = elf_file_open(p->path, &f, e); /* says why, if it cannot be opened at all */
        if (r != 0)
                return r;
        elf_file_inode(f, &device, &inode);
        if (error == EMFILE || error == ENFILE)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-fds", "no fd is left to keep %s open: raise LimitNOFILE= "
                        "(RLIMIT_NOFILE), or trace less", p->path);
        if (p->fd < 0 || !is_same_file(p->fd, device, inode))
                return refuse(e, REFUSED_NOT_FOUND, "no-file", "%s was replaced while it was examined%s%s: try again",
                              QUOTE(p->path), error ? ": " : "", error ? strerror(error) : "");
        *ret = TAKE_PTR(f);
        return 0;
}

/* " (3 sites, build id 3f5a...)", or nothing to say */
static void describe_file(const ElfFile *f, size_t n_sites, char *ret, size_t size) {
        uint8_t id[BUILD_ID_SIZE_MAX];
        size_t n_id = elf_file_build_id(f, id), n = 0;

        ret[0] = '\0';
        if (n_sites > 1)
                n += (size_t)snprintf(ret, size, " (%zu sites", n_sites);
        if (n_id > 0)
                n += (size_t)snprintf(ret + n, size - n, "%sbuild id ", n > 0 ? ", " : " (");
        for (size_t i = 0; i < n_id; i++)
                n += (size_t)snprintf(ret + n, size - n, "%02x", id[i]);
        if (n > 0)
                (void)snprintf(ret + n, size - n, ")");
}

/* The first alternate that resolves; of refusals the first that is more than "not there". */
static int find_in_file(const ElfFile *f, const ProbePlace *place, ElfPlace *ret, Explanation *e) {
        int first = 0;

        if (place->n_symbols == 0)
                return elf_file_find_address(f, place->address, ret, e);
        for (size_t i = 0; i < place->n_symbols; i++) {
                Explanation said = EXPLANATION_NULL;
                int r = elf_file_find(f, place->symbols[i], place->offset, ret, &said);

                if (r <= 0)
                        return r;
                if (first != 0 && (first != REFUSED_NOT_FOUND || r == REFUSED_NOT_FOUND))
                        continue;
                first = r;
                if (e)
                        *e = said;
                if (r == REFUSED_CANCELLED)
                        break;
        }
        return first;
}

static int find_symbol(const EventName *name, const ElfFile *f, ProbePlaces *p, Explanation *e) {
        char file[128], where[sizeof(((ElfPlace *)0)->symbol) + 20];
        ElfPlace found;
        bool is_checked;
        int r = find_in_file(f, &name->place, &found, e);

        if (r == 0)
                r = elf_file_check_instruction(f, &found, &is_checked, e);
        if (r == 0)
                r = add_site(p, found.file_offset, 0, NULL);
        if (r != 0)
                return r;
        if (name->place.n_symbols == 0)
                (void)snprintf(where, sizeof(where), "0x%" PRIx64, name->place.address);
        else if (name->place.offset == 0)
                (void)snprintf(where, sizeof(where), "%s", found.symbol);
        else
                (void)snprintf(where, sizeof(where), "%s+0x%" PRIx64, found.symbol, name->place.offset);
        describe_file(f, 1, file, sizeof(file));
        p->is_unchecked = !is_checked;
        p->label = strdup(where);
        if (!p->label || asprintf(&p->text, "%s:%s%s", p->path, where, file) < 0) {
                p->text = NULL;
                return error_origin(-ENOMEM);
        }
        return 0;
}

static int take_sites(const ElfProbe *probes, size_t n, ProbePlaces *p, Explanation *ret_left_out, Explanation *e) {
        for (size_t i = 0; i < n; i++) {
                Explanation said = EXPLANATION_NULL;
                int r = checkpoint(e);
                char *args = r == 0 ? elf_probe_fetch_args(&probes[i], &said) : NULL;

                if (r != 0)
                        return r;
                if (!args)
                        return error_origin(-ENOMEM);
                if (said.text[0])
                        *ret_left_out = said;
                if (!*args) {
                        free(args);
                        args = NULL;
                }
                if (add_site(p, probes[i].file_offset, probes[i].semaphore_offset, args) < 0)
                        return error_origin(-ENOMEM);
        }
        return 0;
}

static int find_static(const EventName *name, const ElfFile *f, ProbePlaces *p, Explanation *e) {
        Explanation left_out = EXPLANATION_NULL;
        ElfProbe *probes;
        char file[128];
        size_t n;
        int r = elf_file_probes(f, name->group, name->name, &probes, &n, e);

        if (r != 0)
                return r;
        r = take_sites(probes, n, p, &left_out, e);
        elf_probes_free(probes, n);
        if (r != 0)
                return r;
        describe_file(f, n, file, sizeof(file));
        if (asprintf(&p->label, "%s_%s", name->group, name->name) < 0) {
                p->label = NULL;
                return error_origin(-ENOMEM);
        }
        if (asprintf(&p->text, "%s:%s:%s%s%s%s", p->path, name->group, name->name, file, left_out.text[0] ? "; " : "",
                     left_out.text) < 0) {
                p->text = NULL;
                return error_origin(-ENOMEM);
        }
        return 0;
}

/* A path leads a client elsewhere the moment behind: nothing but the fd is used from here on. */
static int open_file_of(const Credentials *client, ProbePlaces *p, ElfFile **ret, Explanation *e) {
        int r = file_access_open(p->path, client, &p->fd, e);

        p->is_by_fd = true;
        return r == 0 ? elf_file_open_fd(p->fd, p->path, ret, e) : r;
}

int probe_file_open(const char *path, const Credentials *client, ElfFile **ret, Explanation *e) {
        _cleanup_(probe_places_deinit) ProbePlaces p = PROBE_PLACES_NULL;

        p.path = strdup(path);
        if (!p.path)
                return error_origin(-ENOMEM);
        return client ? open_file_of(client, &p, ret, e) : open_file(&p, ret, e);
}

int probe_places_find(const EventName *name, KernelSymbolIndex *index, const Credentials *client, ProbePlaces *ret,
                      Explanation *e) {
        _cleanup_(probe_places_deinit) ProbePlaces p = PROBE_PLACES_NULL;
        _cleanup_(elf_file_closep) ElfFile *f = NULL;
        int r;

        if (name->kind == EVENT_NAME_KPROBE)
                r = find_in_kernel(&name->place, index, client, &p, e);
        else {
                p.path = strdup(name->path);
                if (!p.path)
                        return error_origin(-ENOMEM);
                r = client ? open_file_of(client, &p, &f, e) : open_file(&p, &f, e);
                if (r == 0)
                        r = name->kind == EVENT_NAME_USDT ? find_static(name, f, &p, e) : find_symbol(name, f, &p, e);
        }
        if (r != 0)
                return r;
        *ret = p;
        p = PROBE_PLACES_NULL;
        return 0;
}
