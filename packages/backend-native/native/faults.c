/* Failures that tests request by POLYGRAD_NATIVE_FAULT, in a separate binary (build.mjs --faults). The addon of users has nothing of this file. */
#include "native.h"

#ifdef POLYGRAD_FAULTS
#include <stdlib.h>
#include <string.h>

int wanted(const char *fault) {
  const char *given = getenv("POLYGRAD_NATIVE_FAULT");
  return given != NULL && strcmp(given, fault) == 0;
}
#else
typedef int nothing;
#endif
