/* Functions that a module should not have. All but the last end or block their process. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A value as the runtime passes it. */
typedef struct {
  int32_t type_index;
  uint32_t padding;
  union {
    int64_t v_int64;
    double v_float64;
    void* v_ptr;
  };
} TVMFFIAny;

#define FUNCTION(name)                                                            \
  __attribute__((visibility("default"))) int __tvm_ffi_##name(                    \
      void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* result)

FUNCTION(dereference_null) { return *(volatile int*)0; }

FUNCTION(loop) {
  volatile int64_t turns = 0;
  for (;;) turns++;
}

/* The machine is not to suffer from a server without a limit, so there is an end to it, beyond the limit
   that the test sets. */
FUNCTION(take_memory) {
  const size_t step = (size_t)16 << 20, most = (size_t)2 << 30;
  for (size_t taken = 0; taken < most; taken += step) {
    void* memory = malloc(step);
    if (memory == NULL) break;
    memset(memory, 1, step);
  }
  abort();
}

FUNCTION(leave) { exit(3); }

FUNCTION(give_up) { abort(); }

/* How many MiB of memory the process is given at once, 4096 at most. It gives them back. */
FUNCTION(memory_given) {
  void** last = NULL;
  int64_t given = 0;
  for (void** block; given < 4096 && (block = malloc((size_t)1 << 20)); given++) {
    *block = last;
    last = block;
  }
  while (last != NULL) {
    void** before = *last;
    free(last);
    last = before;
  }
  result->type_index = 1; /* an integer */
  result->v_int64 = given;
  return 0;
}
