/*
 * Processes that are gone before anybody could look at them.
 *
 *   short-life N FOLDER... -- PROGRAM...     makes N children, four at a time. Child i moves itself into the cgroup of
 *                                            FOLDER i, executes PROGRAM i (both in turns), and that is all.
 *   short-life                               what they execute: three calls of getppid(2), then the end
 *
 * Linked statically, so that an exec is short. On stdin it waits for a line; on stdout it says "ready PID" before, and
 * for each child its pid and the microseconds of CPU that it took, which are the same on a busy machine; then "done".
 * Status 1 if a child does not end with 0.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT_A_TIME 4
#define CALLS 3

static long long us_of(const struct timeval *t) {
        return (long long)t->tv_sec * 1000000 + t->tv_usec;
}

static void live(const char *folder, char *program) {
        char path[4096];
        int fd;

        (void)snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "0", 1) != 1)
                _exit(2);
        execv(program, (char *[]){ program, NULL });
        _exit(3);
}

static int bury(pid_t *lives) {
        struct rusage usage;
        int status;
        pid_t pid = wait4(-1, &status, 0, &usage);

        for (int i = 0; i < AT_A_TIME; i++)
                if (lives[i] == pid) {
                        printf("%d %lld\n", (int)pid, us_of(&usage.ru_utime) + us_of(&usage.ru_stime));
                        lives[i] = 0;
                        return status;
                }
        return 1;
}

int main(int argc, char **argv) {
        pid_t lives[AT_A_TIME] = { 0 };
        int n, n_folders = 0, n_programs, failed = 0;
        char line[16];

        if (argc == 1) {
                for (int i = 0; i < CALLS; i++)
                        (void)syscall(SYS_getppid);
                return 0;
        }
        n = atoi(argv[1]);
        while (2 + n_folders < argc && strcmp(argv[2 + n_folders], "--") != 0)
                n_folders++;
        n_programs = argc - 3 - n_folders;
        if (n_folders < 1 || n_programs < 1)
                return 2;
        printf("ready %d\n", (int)getpid());
        fflush(stdout);
        if (!fgets(line, sizeof(line), stdin))
                return 1;
        for (int i = 0; i < n; i++) {
                pid_t *l = lives;

                while (l < lives + AT_A_TIME && *l)
                        l++;
                if (l == lives + AT_A_TIME) {
                        failed |= bury(lives);
                        i--;
                        continue;
                }
                fflush(stdout); /* nothing of it is the child's to write */
                *l = fork();
                if (*l < 0)
                        return 1;
                if (*l == 0)
                        live(argv[2 + i % n_folders], argv[3 + n_folders + i % n_programs]);
        }
        for (int left = 1; left;) {
                left = 0;
                for (int i = 0; i < AT_A_TIME; i++)
                        left |= lives[i] > 0;
                if (left)
                        failed |= bury(lives);
        }
        printf("done\n");
        return failed ? 1 : 0;
}
