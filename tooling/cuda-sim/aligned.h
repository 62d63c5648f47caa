/** Memory that begins at a multiple of a number: what every system has, under one name. */
#pragma once
#include <cstddef>
#include <cstdlib>

#if defined(_WIN32)
#include <malloc.h>
inline void* AlignedAlloc(size_t align, size_t bytes) { return _aligned_malloc(bytes, align); }
inline void AlignedFree(void* at) { _aligned_free(at); }
#else
inline void* AlignedAlloc(size_t align, size_t bytes) { return std::aligned_alloc(align, bytes); }
inline void AlignedFree(void* at) { std::free(at); }
#endif
