#include "clblast.h"

#include <vector>

#include "shared-object.h"

namespace {

constexpr int kRowMajor = 101;
constexpr int kAsItIs = 111;
constexpr int kTransposed = 112;

template <typename T>
struct Routines {
  int (*one)(int, int, int, size_t, size_t, size_t, T, cl_mem, size_t, size_t, cl_mem, size_t, size_t, T, cl_mem, size_t, size_t,
             cl_command_queue*, cl_event*) = nullptr;
  int (*batch)(int, int, int, size_t, size_t, size_t, T, cl_mem, size_t, size_t, size_t, cl_mem, size_t, size_t, size_t, T, cl_mem,
               size_t, size_t, size_t, size_t, cl_command_queue*, cl_event*) = nullptr;
};

OpenOnce blast;
Routines<float> single;
Routines<double> twice;

#if defined(_WIN32)
const std::vector<std::string> blastNames = {"clblast.dll"};
#elif defined(__APPLE__)
const std::vector<std::string> blastNames = {"libclblast.1.dylib", "libclblast.dylib"};
#else
const std::vector<std::string> blastNames = {"libclblast.so.1", "libclblast.so"};
#endif

template <typename F>
bool Get(void* library, const char* name, F* function) {
  *function = reinterpret_cast<F>(FindSymbol(library, name));
  return *function != nullptr;
}

template <typename T>
int Call(const Routines<T>& routines, const Product& p, const Matrices& at, cl_command_queue* queue, cl_event* event) {
  const int a = p.a.transposed ? kTransposed : kAsItIs;
  const int b = p.b.transposed ? kTransposed : kAsItIs;
  if (p.batch == 1)
    return routines.one(kRowMajor, a, b, p.m, p.n, p.k, 1, at.a, p.a.offset, p.a.stride, at.b, p.b.offset, p.b.stride,
                        0, at.c, p.c.offset, p.c.stride, queue, event);
  return routines.batch(kRowMajor, a, b, p.m, p.n, p.k, 1, at.a, p.a.offset, p.a.stride, p.a.distance, at.b,
                        p.b.offset, p.b.stride, p.b.distance, 0, at.c, p.c.offset, p.c.stride, p.c.distance, p.batch, queue,
                        event);
}

}  // namespace

std::string OpenBlast(const std::string& path) {
  return blast.Open(path.empty() ? blastNames : std::vector<std::string>{path}, [](void* library) -> std::string {
    Routines<float> s;
    Routines<double> d;
    if (!Get(library, "CLBlastSgemm", &s.one) || !Get(library, "CLBlastSgemmStridedBatched", &s.batch) ||
        !Get(library, "CLBlastDgemm", &d.one) || !Get(library, "CLBlastDgemmStridedBatched", &d.batch)) {
      return "the library lacks CLBlastSgemmStridedBatched or another routine: CLBlast 1.4 or newer is needed";
    }
    single = s;
    twice = d;
    return "";
  });
}

void NeedBlast() {
  if (!blast.IsOpen()) throw ClError{CL_INVALID_VALUE, "CLBlast", -1, "openClblast() comes first"};
}

void Enqueue(const Product& product, const Matrices& matrices, cl_command_queue queue, cl_event* event) {
  NeedBlast();
  if (BytesOf(product.factor) == 2) Refuse(kProductCall, "CLBlast has 16 bits in another accuracy");
  const int code = product.isDouble() ? Call(twice, product, matrices, &queue, event) : Call(single, product, matrices, &queue, event);
  if (code != 0) throw ClError{code, product.isDouble() ? "CLBlastDgemm" : "CLBlastSgemm"};
}
