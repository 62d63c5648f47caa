/** What the sources that addons share (@polygrad/addon) must know of OpenCL. */
#pragma once

constexpr const char* kApi = "OpenCL";
constexpr int kInvalidValue = -30;
constexpr int kOutOfHostMemory = -6;
constexpr int kOutOfResources = -5;
