/** A failed call of a driver, or a refused argument: how everything below `Guarded` fails. */
#pragma once
#include <cstdint>
#include <string>

// The addon's own: kApi, kInvalidValue, kOutOfHostMemory, kOutOfResources.
#include "api.h"

/** The code, the name of the call, and the index of the command in its batch (-1 outside of batches). */
struct NativeError {
  int code;
  const char* call;
  int64_t command = -1;
  std::string log = {};
};
