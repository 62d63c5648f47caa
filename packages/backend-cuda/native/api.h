/** What the sources that addons share (@polygrad/addon) must know of CUDA. */
#pragma once

constexpr const char* kApi = "CUDA";
constexpr int kInvalidValue = 1;
constexpr int kOutOfHostMemory = 2;
constexpr int kOutOfResources = 701;
