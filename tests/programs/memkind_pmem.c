/* What programs use of memkind for kinds in files, by the header of libhmalloc. Arguments: a directory
 * and how many kinds to create at once. */
#include <nearfar/hmalloc_memkind.h>
#include <stdlib.h>

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

int main(int count, char** arguments) {
  const char* directory = arguments[count - 2];
  struct memkind* kind = NULL;
  report("too small", memkind_create_pmem(directory, MEMKIND_PMEM_MIN_SIZE - 1, &kind));
  report("no directory", memkind_create_pmem("/no/such/directory", 0, &kind));
  report("dax of no directory", memkind_check_dax_path("/no/such/directory"));
  report("destroy default", memkind_destroy_kind(MEMKIND_DEFAULT));
  report("configured", configured(directory, &kind));
  char* block = memkind_malloc(kind, 1 << 20);
  void* aligned = NULL;
  report("aligned", memkind_posix_memalign(kind, &aligned, 4096, 100));
  printf("detected %d %d\n", memkind_detect_kind(block) == kind, memkind_detect_kind(aligned) == kind);
  printf("too large %d\n", memkind_malloc(kind, MEMKIND_PMEM_MIN_SIZE) == NULL);
  memkind_free(NULL, block);
  memkind_free(kind, aligned);
  report("destroyed", memkind_destroy_kind(kind));
  const int more = atoi(arguments[count - 1]);
  int err = MEMKIND_SUCCESS;
  for (int i = 1; i < more && err == MEMKIND_SUCCESS; ++i)
    err = memkind_create_pmem(directory, MEMKIND_PMEM_MIN_SIZE, &kind);
  report("kinds", err);
  return 0;
}
