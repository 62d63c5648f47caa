/** The devices of the driver. */
#pragma once
#include <napi.h>

/** Throws NativeError where the driver cannot start or knows no device. */
Napi::Value ListDevices(Napi::Env env);
/** CUDA's version that the driver is for, as 1000 * major + 10 * minor. */
int DriverVersion();
