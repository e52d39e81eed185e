/*
 * Runs a fuzz target over its corpus without libFuzzer, for `make check` with
 * any compiler: each file whole, cut short, and changed in a few hundred ways
 * that are the same in every run.
 */
#include <config.h>

#include <dirent.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

#define FILE_MAX ((size_t)1 << 20)
#define CUTS 200
#define CHANGES 300

static unsigned long runs;

static void
run(const char *p, size_t size)
{
	/* An exact heap copy, so that ASan sees a read past the end. */
	uint8_t *copy = malloc(size == 0 ? 1 : size);

	FUZZ_CHECK(copy != NULL);
	memcpy(copy, p, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	runs++;
}

static void
change(char *p, size_t size, uint32_t *seed)
{
	static const char odd[] = "\"\\{}[],:\n\r \0\x7f\x80\xc3\xed\xff"
				  "0-e";
	uint32_t n = 1 + fuzz_next(seed) % 4;
	size_t from, to, len;

	while (n-- > 0) {
		to = fuzz_next(seed) % size;
		switch (fuzz_next(seed) % 3) {
		case 0:
			p[to] = odd[fuzz_next(seed) % (sizeof(odd) - 1)];
			break;
		case 1:
			p[to] = (char)(p[to] ^ 1 << fuzz_next(seed) % 8);
			break;
		default:
			from = fuzz_next(seed) % size;
			len = fuzz_next(seed) % 32;
			if (len > size - (from > to ? from : to))
				len = size - (from > to ? from : to);
			memmove(p + to, p + from, len);
			break;
		}
	}
}

static void
run_file(const char *data, size_t size)
{
	uint32_t seed = 2463534242u;
	char *p = malloc(size + 1);
	size_t i;

	FUZZ_CHECK(p != NULL);
	run(data, size);
	for (i = 0; i < CUTS && i < size; i++)
		run(data, size <= CUTS ? i : size * i / CUTS);
	for (i = 0; i < CHANGES && size > 0; i++) {
		memcpy(p, data, size);
		change(p, size, &seed);
		run(p, size);
	}
	free(p);
}

static size_t
read_file(const char *path, char *buf)
{
	FILE *f = fopen(path, "rb");
	size_t n;

	if (f == NULL)
		return SIZE_MAX;
	n = fread(buf, 1, FILE_MAX, f);
	fclose(f);
	return n;
}

int
main(void)
{
	const char *src = getenv("HF_SRCDIR");
	char path[4096];
	char *buf = malloc(FILE_MAX);
	struct dirent *de;
	unsigned files = 0;
	DIR *dir;
	size_t n;

	printf("1..1\n");
	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/%s",
	    src == NULL ? "." : src, fuzz_name);
	dir = opendir(path);
	while (dir != NULL && buf != NULL && (de = readdir(dir)) != NULL) {
		if (de->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/%s/%s",
		    src == NULL ? "." : src, fuzz_name, de->d_name);
		n = read_file(path, buf);
		if (n == SIZE_MAX)
			continue;
		run_file(buf, n);
		files++;
	}
	if (dir != NULL)
		closedir(dir);
	free(buf);
	printf("%s 1 - %s: %u files, %lu runs\n", files == 0 ? "not ok" : "ok",
	    fuzz_name, files, runs);
	return files == 0;
}
