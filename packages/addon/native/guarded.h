/** Between JavaScript and C++: failures as JavaScript errors, arguments as numbers and bytes. No C++ exception gets past `Guarded`. */
#pragma once
#include <napi.h>

#include <exception>
#include <new>
#include <string>

#include "checked.h"

/** A failed call as a JavaScript error with the fields `code`, `call`, `command` and `log`. */
inline Napi::Error AsError(Napi::Env env, const NativeError& e) {
  std::string text = std::string(e.call) + " failed with " + kApi + " error " + std::to_string(e.code);
  if (e.code == kInvalidValue && !e.log.empty()) text += ": " + e.log;
  Napi::Error error = Napi::Error::New(env, text);
  error.Set("code", static_cast<double>(e.code));
  error.Set("call", e.call);
  error.Set("command", static_cast<double>(e.command));
  error.Set("log", e.log);
  return error;
}

template <typename F>
auto Guarded(Napi::Env env, F body) -> decltype(body()) {
  try {
    return body();
  } catch (const NativeError& error) {
    throw AsError(env, error);
  } catch (const Napi::Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw AsError(env, NativeError{kOutOfHostMemory, "new"});
  } catch (const std::exception& error) {
    // Threads and locks that the system does not give.
    throw AsError(env, NativeError{kOutOfResources, "the system", -1, error.what()});
  }
}

inline double Number(const Napi::CallbackInfo& info, size_t index) { return info[index].As<Napi::Number>().DoubleValue(); }

struct Bytes {
  uint8_t* data;
  size_t length;
};

/** The memory of a typed array of one type, shared or not; `length` counts elements. None where it was transferred away. */
inline Bytes View(Napi::Env env, napi_value value, napi_typedarray_type wanted = napi_uint8_array) {
  napi_typedarray_type type;
  size_t length = 0;
  void* data = nullptr;
  if (napi_get_typedarray_info(env, value, &type, &length, &data, nullptr, nullptr) != napi_ok || type != wanted)
    throw Napi::TypeError::New(env, wanted == napi_uint8_array ? "a Uint8Array is expected" : "a Float64Array is expected");
  return {static_cast<uint8_t*>(data), data == nullptr ? 0 : length};
}
