/** Devices of all platforms, numbered in the order the loader gives them. */
#pragma once
#include <napi.h>

#include "cl.h"

Napi::Value ListDevices(Napi::Env env);
DeviceChoice FindDevice(uint32_t index);
