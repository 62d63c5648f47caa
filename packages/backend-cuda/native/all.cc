/** The whole addon as one unit: its headers are most of what compiling costs. */
#include "addon.cc"
#include "context.cc"
#include "libraries/convolve.cc"
#include "libraries/cublaslt.cc"
#include "libraries/cudnn.cc"
#include "devices.cc"
#include "driver.cc"
#include "engine.cc"
#include "graphs.cc"
#include "library.cc"
#include "libraries/multiply.cc"
#include "submit.cc"

// Of @polygrad/addon.
#include "jobs.cc"
#include "promises.cc"
#include "shared-object.cc"
#include "waiter.cc"
