/* What programs use of memkind for kinds in files, by the header of libhmalloc. Arguments: a directory,
 * how many kinds to create there at once, and further directories for a kind each. */
#include <limits.h>
#include <memkind.h>
#include <stdlib.h>
#include <string.h>

static void report(const char* what, int err) {
  char message[MEMKIND_ERROR_MESSAGE_SIZE];
  memkind_error_message(err, message, MEMKIND_ERROR_MESSAGE_SIZE);
  printf("%s: %d %s\n", what, err, message);
}

static int configured(const char* directory, struct memkind** kind) {
  struct memkind_config* config = memkind_config_new();
  if (config == NULL) return MEMKIND_ERROR_MALLOC;
  memkind_config_set_path(config, directory);
  memkind_config_set_size(config, MEMKIND_PMEM_MIN_SIZE);
  memkind_config_set_memory_usage_policy(config, MEMKIND_MEM_USAGE_POLICY_CONSERVATIVE);
  const int err = memkind_create_pmem_with_config(config, kind);
  memkind_config_delete(config);
  return err;
}

/* Each kind has blocks of its own until it is destroyed. */
static int many_kinds(const char* directory, int count) {
  struct memkind* kinds[64] = {NULL};
  char* blocks[64];
  int err = MEMKIND_SUCCESS;
  for (int i = 0; i < count && err == MEMKIND_SUCCESS; ++i) {
    err = memkind_create_pmem(directory, MEMKIND_PMEM_MIN_SIZE, &kinds[i]);
    if (err == MEMKIND_SUCCESS && (blocks[i] = memkind_malloc(kinds[i], 1000000)) == NULL)
      err = MEMKIND_ERROR_MALLOC;
    if (err == MEMKIND_SUCCESS) memset(blocks[i], i, 1000000);
  }
  for (int i = 0; i < count && err == MEMKIND_SUCCESS; ++i) {
    if (blocks[i][999999] != i || memkind_detect_kind(blocks[i]) != kinds[i])
      err = MEMKIND_ERROR_RUNTIME;
    if (memkind_destroy_kind(kinds[i]) != MEMKIND_SUCCESS) err = MEMKIND_ERROR_OPERATION_FAILED;
  }
  return err;
}

/* The kind of far memory, next to a kind in a file. */
static int far(void) {
  const int err = memkind_check_available(MEMKIND_DAX_KMEM);
  char* block = memkind_malloc(MEMKIND_DAX_KMEM, 512);
  if (err != MEMKIND_SUCCESS || block == NULL) return err;
  memset(block, 1, 512);
  const int kept = memkind_detect_kind(block) == MEMKIND_DAX_KMEM;
  memkind_free(NULL, block);
  return kept ? MEMKIND_SUCCESS : MEMKIND_ERROR_RUNTIME;
}

int main(int count, char** arguments) {
  const char* directory = arguments[1];
  struct memkind* kind = NULL;
  report("too small", memkind_create_pmem(directory, MEMKIND_PMEM_MIN_SIZE - 1, &kind));
  report("no directory", memkind_create_pmem("/no/such/directory", 0, &kind));
  report("dax of no directory", memkind_check_dax_path("/no/such/directory"));
  report("destroy default", memkind_destroy_kind(MEMKIND_DEFAULT));
  report("configured", configured(directory, &kind));
  char* block = memkind_malloc(kind, 1 << 20);
  void* aligned = NULL;
  block = memkind_realloc(kind, block, (5 << 20) + 1);
  printf("usable %zu\n", memkind_malloc_usable_size(kind, block) >> 20);
  report("aligned", memkind_posix_memalign(kind, &aligned, 4096, 100));
  printf("detected %d %d\n", memkind_detect_kind(block) == kind, memkind_detect_kind(aligned) == kind);
  printf("too large %d\n", memkind_malloc(kind, MEMKIND_PMEM_MIN_SIZE) == NULL);
  memkind_free(NULL, block);
  memkind_free(kind, aligned);
  report("far", far());
  report("destroyed", memkind_destroy_kind(kind));
  report("kinds", many_kinds(directory, atoi(arguments[2])));
  int err = MEMKIND_SUCCESS;
  for (int i = 3; i < count && err == MEMKIND_SUCCESS; ++i)
    err = memkind_create_pmem(arguments[i], 0, &kind);
  report("directories", err);
  return 0;
}
