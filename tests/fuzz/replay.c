/*
 * Runs a fuzzer's function over every file of the corpus folder in argv[1], so that what a fuzzer once found stays
 * found. Fails if there is no file: a replay of nothing proves nothing.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static int replay_file(const char *path) {
        FILE *f = fopen(path, "rb");
        uint8_t *bytes;
        size_t length;
        long size;

        if (!f || fseek(f, 0, SEEK_END) < 0 || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET) < 0) {
                perror(path);
                exit(EXIT_FAILURE);
        }
        bytes = malloc(size ? (size_t)size : 1); /* exactly as long as the input, so that a sanitizer sees one byte more */
        length = fread(bytes, 1, (size_t)size, f);
        fclose(f);
        LLVMFuzzerTestOneInput(bytes, length);
        free(bytes);
        return 1;
}

int main(int argc, char **argv) {
        struct dirent **entries;
        int n, n_files = 0;

        if (argc != 2) {
                fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
                return 2;
        }
        n = scandir(argv[1], &entries, NULL, alphasort);
        if (n < 0) {
                perror(argv[1]);
                return EXIT_FAILURE;
        }
        for (int i = 0; i < n; i++) {
                char path[4096];

                if (entries[i]->d_name[0] != '.') {
                        snprintf(path, sizeof(path), "%s/%s", argv[1], entries[i]->d_name);
                        n_files += replay_file(path);
                }
                free(entries[i]);
        }
        free(entries);
        printf("%d inputs replayed\n", n_files);
        return n_files > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
