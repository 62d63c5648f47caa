/** The whole addon as one unit: its headers are most of what compiling costs. */
#include "addon.cc"
#include "devices.cc"
#include "driver.cc"
#include "engine.cc"
#include "library.cc"
#include "submit.cc"
#include "waiter.cc"
