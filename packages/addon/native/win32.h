/** Texts and paths for functions of Windows, which has its own characters, and what it says of an error. */
#pragma once
#ifndef NOMINMAX
#define NOMINMAX
#endif
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <string>

/** UTF-8, which JavaScript gives, as Windows takes it. */
inline std::wstring WideOf(const std::string& text) {
  const int bytes = static_cast<int>(text.size());
  std::wstring wide(static_cast<size_t>(MultiByteToWideChar(CP_UTF8, 0, text.c_str(), bytes, nullptr, 0)), L'\0');
  MultiByteToWideChar(CP_UTF8, 0, text.c_str(), bytes, &wide[0], static_cast<int>(wide.size()));
  return wide;
}

inline std::string NarrowOf(const wchar_t* text, int length) {
  std::string narrow(static_cast<size_t>(WideCharToMultiByte(CP_UTF8, 0, text, length, nullptr, 0, nullptr, nullptr)), '\0');
  WideCharToMultiByte(CP_UTF8, 0, text, length, &narrow[0], static_cast<int>(narrow.size()), nullptr, nullptr);
  return narrow;
}

/** The whole path, with backslashes; the path as it is where there is none. */
inline std::wstring FullPath(const std::wstring& path) {
  const DWORD length = GetFullPathNameW(path.c_str(), 0, nullptr, nullptr);
  std::wstring full(length, L'\0');
  const DWORD written = length == 0 ? 0 : GetFullPathNameW(path.c_str(), length, &full[0], nullptr);
  if (written == 0 || written >= length) return path;
  full.resize(written);
  return full;
}

/** What the system says about an error, in its language, and the number. */
inline std::string SystemMessage(DWORD error) {
  wchar_t* text = nullptr;
  const DWORD options = FORMAT_MESSAGE_ALLOCATE_BUFFER | FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS;
  DWORD length = FormatMessageW(options, nullptr, error, 0, reinterpret_cast<wchar_t*>(&text), 0, nullptr);
  while (length > 0 && (text[length - 1] <= L' ' || text[length - 1] == L'.')) length--;
  const std::string said = length == 0 ? "" : NarrowOf(text, static_cast<int>(length)) + " ";
  LocalFree(text);
  return said + "(error " + std::to_string(error) + ")";
}
