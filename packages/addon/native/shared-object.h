/** Libraries opened at run time, on every system. */
#pragma once
#include <string>
#include <vector>

/** The first of the names that can be opened; null with the reason of the first that could not. */
void* OpenFirst(const std::vector<std::string>& names, std::string* why);
void* FindSymbol(void* library, const char* name);
void CloseLibrary(void* library);
