/* Gets through libmemcached; what it is told and says stands in ../programs.py.
 *
 * The few functions are declared here: the library is installed with libmemcached-tools, its headers are not. They
 * are those of libmemcached.so.11, since 1.0.8. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

typedef struct memcached_st memcached_st;
memcached_st *memcached(const char *options, size_t length);
char *memcached_get(memcached_st *, const char *key, size_t length, size_t *found, uint32_t *flags, int *result);
const char *memcached_strerror(memcached_st *, int result);
enum { FOUND = 0, MISSING = 16 };

enum { BINS = 32 << 7, KINDS = 3, KEPT = 100 };
static const char *const NAMES[KINDS] = {"hit", "miss", "error"};

struct pair {
    char *key, *value;
    size_t key_length, length;
};

static volatile sig_atomic_t over;
static uint64_t bins[KINDS][BINS];
static int64_t began, boundary, measure;
static int64_t second = -1;
static struct rusage before;

static void stop(int number) {
    (void)number;
    over = 1;
}

static int64_t moment(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void turn(int64_t now) {
    if (second < 0) {
        getrusage(RUSAGE_SELF, &before);
        puts("began");
    } else {
        printf("{\"second\": %ld", (long)second);
        for (int kind = 0; kind < KINDS; kind++) {
            const char *comma = "";
            printf(", \"%s\": {", NAMES[kind]);
            for (int place = 0; place < BINS; place++)
                if (bins[kind][place]) {
                    printf("%s\"%d\": %lu", comma, place, (unsigned long)bins[kind][place]);
                    comma = ", ";
                }
            putchar('}');
        }
        puts("}");
    }
    memset(bins, 0, sizeof bins);
    second = (now - began) / 1000000000;
    if (now >= began + measure) over = 1;
    boundary = began + ((second + 1) * 1000000000 < measure ? (second + 1) * 1000000000 : measure);
}

static void quoted(const char *text, size_t length) {
    putchar('"');
    for (size_t each = 0; each < length && each < 200; each++)
        if (text[each] >= ' ' && text[each] <= '~' && text[each] != '"' && text[each] != '\\') putchar(text[each]);
        else printf("\\u%04x", (unsigned char)text[each]);
    putchar('"');
}

static struct pair *read_pairs(const char *name, size_t *count) {
    struct pair *pairs = NULL;
    char *line = NULL;
    size_t room = 0, size = 0;
    ssize_t length;
    FILE *file = fopen(name, "r");
    if (!file) return NULL;
    for (*count = 0; (length = getline(&line, &size, file)) > 0; ++*count) {
        if (*count == room) pairs = realloc(pairs, (room = room ? room * 2 : 1024) * sizeof *pairs);
        if (!pairs) return NULL;
        if (line[length - 1] == '\n') line[--length] = 0;
        struct pair *one = &pairs[*count];
        one->key = strdup(line);
        one->key_length = strcspn(line, "\t");
        one->key[one->key_length] = 0;
        one->value = one->key + one->key_length + 1;
        one->length = length - one->key_length - 1;
    }
    fclose(file);
    return pairs;
}

static int get(memcached_st *client, const char *key, size_t length, const char *wanted, size_t size, char **found,
               size_t *found_length) {
    uint32_t flags;
    int result;
    *found = memcached_get(client, key, length, found_length, &flags, &result);
    if (result == MISSING) return 1;
    if (result == FOUND && *found_length == size && (size == 0 || !memcmp(*found, wanted, size))) return 0;
    if (result != FOUND) {
        *found = strdup(memcached_strerror(client, result));
        *found_length = strlen(*found);
    }
    return 2;
}

int main(int argc, char **argv) {
    if (argc != 7) return 2;
    const char *word = argv[2];
    const double warmup = atof(argv[3]);
    long left = atol(argv[5]);
    char options[300], go[8], *found = NULL;
    char *keys[KEPT], *answers[KEPT];
    size_t count, length = 0, lengths[KEPT], errors = 0;
    measure = (int64_t)(atof(argv[4]) * 1e9);
    struct pair *pairs = read_pairs(argv[6], &count);
    if (!pairs || !count) return fprintf(stderr, "%s: no pairs\n", argv[6]), 1;
    snprintf(options, sizeof options, "--SERVER=%s --TCP-NODELAY", argv[1]);
    memcached_st *client = memcached(options, strlen(options));
    if (!client) return fprintf(stderr, "libmemcached does not take %s\n", options), 1;
    if (*word) {
        uint32_t flags;
        int result;
        free(memcached_get(client, word, strlen(word), &length, &flags, &result));
        if (result != FOUND) return fprintf(stderr, "%s: the server has no such mapping\n", word), 1;
    }
    get(client, pairs[0].key, pairs[0].key_length, "", 0, &found, &length);
    free(found);
    signal(SIGTERM, stop);
    setvbuf(stdout, NULL, _IOLBF, 1 << 16);
    puts("ready");
    if (!fgets(go, sizeof go, stdin)) return 0;

    began = boundary = moment() + (int64_t)(warmup * 1e9);
    if (warmup == 0) turn(began);
    int64_t now = began;
    for (size_t place = 0; !over; place = place + 1 == count ? 0 : place + 1) {
        const struct pair *pair = &pairs[place];
        const int64_t sent = moment();
        const int kind = get(client, pair->key, pair->key_length, pair->value, pair->length, &found, &length);
        now = moment();
        if (kind == 2 && second >= 0 && errors++ < KEPT) {
            keys[errors - 1] = pair->key;
            answers[errors - 1] = found;
            lengths[errors - 1] = length;
        } else
            free(found);
        uint64_t took = now - sent;
        int shift = 0;
        while (took >> shift >= 256) shift++;
        bins[kind][(shift << 7) + (took >> shift)]++;
        if (--left == 0) over = 1;
        if (now >= boundary) turn(now);
    }
    if (second < 0) turn(now);
    turn(now = moment());
    struct rusage after;
    getrusage(RUSAGE_SELF, &after);
    const double user = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
                        (after.ru_utime.tv_usec - before.ru_utime.tv_usec) / 1e6;
    const double sys = (after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
                       (after.ru_stime.tv_usec - before.ru_stime.tv_usec) / 1e6;
    printf("{\"seconds\": %.9f, \"cpu\": %.9f, \"user\": %.6f, \"system\": %.6f, \"errors\": %zu, \"unexpected\": [",
           (now - began) / 1e9, user + sys, user, sys, errors);
    for (size_t each = 0; each < errors && each < KEPT; each++) {
        fputs(each ? ", [" : "[", stdout);
        quoted(keys[each], strlen(keys[each]));
        fputs(", ", stdout);
        quoted(answers[each], lengths[each]);
        putchar(']');
    }
    puts("]}");
    fflush(stdout);
    return fgets(go, sizeof go, stdin) == NULL ? 0 : 0;
}
