/*
 * Node-API: engines by number, code by number, batches of commands. Every number, offset and length that JavaScript gives is checked here; generated
 * code is trusted.
 */
#define NAPI_VERSION 8
#include <node_api.h>

#include <stdlib.h>
#include <string.h>

#include "native.h"

enum { most_engines = 256 };

/* One kernel. */
struct code {
  void *at;
  size_t length;
  int64_t groups;
  uint32_t params;
  uint32_t scalars;
};

struct engine {
  uint8_t *base;
  size_t bytes;
  napi_ref buffer;
  struct pool *pool;
  uint8_t *scratch;
  struct code *codes;
  uint32_t count;
  uint32_t room;
  uint64_t args[2 * arg_slots];
  /* The running batch: a copy, so that nothing changes it after it was checked. */
  double *cells;
  size_t cell_room;
  /* Where JavaScript writes batches: memory that cannot be detached. */
  const double *given;
  size_t given_room;
  napi_ref given_buffer;
};

struct instance {
  struct engine *engines[most_engines];
};

static napi_value fail(napi_env env, const char *text) {
  napi_throw_error(env, NULL, text);
  return NULL;
}

static struct instance *instance_of(napi_env env) {
  void *data = NULL;
  napi_get_instance_data(env, &data);
  return data;
}

/* True for a whole number from 0 to `most`, which is less than 2^63: numbers with a sign are converted by one instruction. */
static int is_whole(double x, double most) { return x >= 0 && x <= most && x == (double)(int64_t)x; }

/* The same for a JavaScript value; -1 otherwise. */
static double whole(napi_env env, napi_value value, double most) {
  double x;
  return napi_get_value_double(env, value, &x) == napi_ok && is_whole(x, most) ? x : -1;
}

/* A typed array of this type; with its buffer if the caller wants it (which takes time). */
static int typed(napi_env env, napi_value value, napi_typedarray_type want, void **data, size_t *length, napi_value *buffer) {
  napi_typedarray_type type;
  return napi_get_typedarray_info(env, value, &type, length, data, buffer, NULL) == napi_ok && type == want;
}

/* Memory that JavaScript cannot take away, as it can detach an ArrayBuffer: a SharedArrayBuffer. */
static int stays(napi_env env, napi_value buffer) {
  bool may_go = true;
  return napi_is_arraybuffer(env, buffer, &may_go) == napi_ok && !may_go;
}

static struct engine *engine_of(napi_env env, napi_value value) {
  double id = whole(env, value, most_engines - 1);
  struct instance *all = instance_of(env);
  return id < 0 || all == NULL ? NULL : all->engines[(int)id];
}

static void free_engine(napi_env env, struct engine *e) {
  stop_pool(e->pool);
  for (uint32_t i = 0; i < e->count; i++)
    if (e->codes[i].at != NULL) unmap_code(e->codes[i].at, e->codes[i].length);
  free(e->codes);
  free(e->cells);
  unmap_pages(e->scratch, scratch_bytes);
  if (env != NULL && e->buffer != NULL) napi_delete_reference(env, e->buffer);
  if (env != NULL && e->given_buffer != NULL) napi_delete_reference(env, e->given_buffer);
  free(e);
}

/* Called when the environment ends, as worker threads do: nothing runs any more. */
static void free_instance(napi_env env, void *data, void *hint) {
  (void)env;
  (void)hint;
  struct instance *all = data;
  for (int i = 0; i < most_engines; i++)
    if (all->engines[i] != NULL) free_engine(NULL, all->engines[i]);
  free(all);
}

#define ARGUMENTS(n)                                                                                     \
  size_t count = n;                                                                                      \
  napi_value given[n];                                                                                   \
  if (napi_get_cb_info(env, info, &count, given, NULL, NULL) != napi_ok || count < n) return fail(env, "[native] arguments are missing")

static napi_value features(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value out;
  napi_create_int32(env, find_features(), &out);
  return out;
}

/* create(memory: Uint8Array, threads) */
static napi_value create(napi_env env, napi_callback_info info) {
  ARGUMENTS(2);
  void *data;
  size_t length;
  napi_value buffer;
  if (!typed(env, given[0], napi_uint8_array, &data, &length, &buffer) || !stays(env, buffer))
    return fail(env, "[native] the memory must be a Uint8Array on a SharedArrayBuffer");
  double threads = whole(env, given[1], most_threads);
  if (threads < 1) return fail(env, "[native] bad number of threads");
  struct instance *all = instance_of(env);
  int id = 0;
  while (id < most_engines && all->engines[id] != NULL) id++;
  if (id == most_engines) return fail(env, "[native] too many engines: dispose some");
  struct engine *e = calloc(1, sizeof *e);
  if (e == NULL) return fail(env, "[native] no memory for an engine");
  e->base = data;
  e->bytes = length;
  e->scratch = map_pages(scratch_bytes);
  if (e->scratch == NULL || napi_create_reference(env, buffer, 1, &e->buffer) != napi_ok) {
    free_engine(env, e);
    return fail(env, "[native] no memory for an engine");
  }
  if (threads > 1) e->pool = start_pool((int32_t)threads - 1);
  all->engines[id] = e;
  napi_value out;
  napi_create_int32(env, id, &out);
  return out;
}

/* resize(engine, memory): the same memory, grown. */
static napi_value resize(napi_env env, napi_callback_info info) {
  ARGUMENTS(2);
  struct engine *e = engine_of(env, given[0]);
  void *data;
  size_t length;
  napi_value buffer, held;
  bool same = false;
  if (e == NULL || !typed(env, given[1], napi_uint8_array, &data, &length, &buffer)) return fail(env, "[native] bad engine or memory");
  if (napi_get_reference_value(env, e->buffer, &held) != napi_ok || napi_strict_equals(env, buffer, held, &same) != napi_ok || !same || data != e->base)
    return fail(env, "[native] the memory is another one");
  e->bytes = length;
  use_large_pages(e->base, length);
  return NULL;
}

/* compile(engine, code: Uint8Array, parameters, scalars, groups) */
static napi_value compile(napi_env env, napi_callback_info info) {
  ARGUMENTS(5);
  struct engine *e = engine_of(env, given[0]);
  void *bytes;
  size_t length;
  if (e == NULL || !typed(env, given[1], napi_uint8_array, &bytes, &length, NULL) || length == 0)
    return fail(env, "[native] bad engine or code");
  double params = whole(env, given[2], arg_slots);
  double scalars = whole(env, given[3], arg_slots);
  double groups = whole(env, given[4], 9e15);
  if (params < 0 || scalars < 0 || groups < 0) return fail(env, "[native] bad number of parameters, scalars or groups");
  uint32_t id = 0;
  while (id < e->count && e->codes[id].at != NULL) id++;
  if (id == e->room) {
    uint32_t room = e->room == 0 ? 64 : e->room * 2;
    struct code *more = realloc(e->codes, room * sizeof *more);
    if (more == NULL) return fail(env, "[native] no memory for code");
    e->codes = more;
    e->room = room;
  }
  struct code made = {.length = length, .groups = (int64_t)groups, .params = (uint32_t)params, .scalars = (uint32_t)scalars};
  made.at = map_code(bytes, length);
  if (made.at == NULL) return fail(env, "[native] the system does not let memory be made executable");
  e->codes[id] = made;
  if (id == e->count) e->count++;
  napi_value out;
  napi_create_uint32(env, id, &out);
  return out;
}

static napi_value release(napi_env env, napi_callback_info info) {
  ARGUMENTS(2);
  struct engine *e = engine_of(env, given[0]);
  double id = e == NULL ? -1 : whole(env, given[1], e->count - 1.0);
  if (id < 0 || e->codes[(uint32_t)id].at == NULL) return fail(env, "[native] no such code");
  struct code *c = &e->codes[(uint32_t)id];
  unmap_code(c->at, c->length);
  memset(c, 0, sizeof *c);
  return NULL;
}

/* True if `bytes` bytes from an offset on are inside the memory. */
static int inside(const struct engine *e, double offset, double bytes) {
  return is_whole(offset, 9e15) && is_whole(bytes, 9e15) && (int64_t)offset + (int64_t)bytes <= (int64_t)e->bytes;
}

enum { command_dispatch, command_copy, command_fill };

/* Errors of a batch. */
enum { fine, bad_command, bad_code, bad_place, failed_check };

static int run_commands(struct engine *e, const double *cells, size_t length, int32_t *fault) {
  size_t at = 0;
  while (at < length) {
    double kind = cells[at++];
    if (kind == command_dispatch) {
      if (at + 2 > length) return bad_command;
      double id = cells[at++];
      double chunk = cells[at++];
      if (!is_whole(id, (double)(int64_t)e->count - 1) || !(chunk >= 0 && chunk <= 9e15)) return bad_code;
      const struct code *c = &e->codes[(int64_t)id];
      if (c->at == NULL) return bad_code;
      if (at + 2 * (size_t)c->params + c->scalars > length) return bad_command;
      for (uint32_t i = 0; i < c->params; i++) {
        double offset = cells[at++];
        double bytes = cells[at++];
        if (!inside(e, offset, bytes)) return bad_place;
        e->args[i] = (uint64_t)(uintptr_t)(e->base + (int64_t)offset);
      }
      if (c->scalars > 0) memcpy(&e->args[arg_slots], &cells[at], c->scalars * 8);
      at += c->scalars;
      kernel_function function;
      memcpy(&function, &c->at, sizeof function);
      *fault = run_groups(e->pool, function, e->args, c->groups, (int64_t)chunk, e->scratch);
      if (*fault != 0) return failed_check;
      if (c->params > 0 && wanted("answers")) *(uint8_t *)(uintptr_t)e->args[c->params - 1] ^= 1;
    } else if (kind == command_copy) {
      if (at + 3 > length) return bad_command;
      double from = cells[at], to = cells[at + 1], bytes = cells[at + 2];
      at += 3;
      if (!inside(e, from, bytes) || !inside(e, to, bytes)) return bad_place;
      memmove(e->base + (size_t)to, e->base + (size_t)from, (size_t)bytes);
    } else if (kind == command_fill) {
      if (at + 3 > length) return bad_command;
      double to = cells[at], bytes = cells[at + 1];
      uint32_t pattern;
      memcpy(&pattern, &cells[at + 2], 4);
      at += 3;
      if (!inside(e, to, bytes)) return bad_place;
      for (size_t i = 0; i + 4 <= (size_t)bytes; i += 4) memcpy(e->base + (size_t)to + i, &pattern, 4);
    } else return bad_command;
  }
  return fine;
}

/* Runs a batch: undefined, or the number of the check that failed. */
static napi_value run_batch(napi_env env, struct engine *e, const double *cells, size_t length) {
  if (length > e->cell_room) {
    double *more = realloc(e->cells, length * sizeof *more);
    if (more == NULL) return fail(env, "[native] no memory for commands");
    e->cells = more;
    e->cell_room = length;
  }
  if (length > 0) memcpy(e->cells, cells, length * sizeof(double));
  int32_t fault = 0;
  uint32_t before = plain_arithmetic();
  int problem = run_commands(e, e->cells, length, &fault);
  restore_arithmetic(before);
  if (problem == fine) return NULL;
  if (problem == bad_command) return fail(env, "[native] a command is cut short or unknown");
  if (problem == bad_code) return fail(env, "[native] no such code");
  if (problem == bad_place) return fail(env, "[native] a command reaches outside of the memory");
  napi_value out;
  napi_create_int32(env, fault, &out);
  return out;
}

/* submit(engine, cells: Float64Array, length) */
static napi_value submit(napi_env env, napi_callback_info info) {
  ARGUMENTS(3);
  struct engine *e = engine_of(env, given[0]);
  void *cells;
  size_t room;
  if (e == NULL || !typed(env, given[1], napi_float64_array, &cells, &room, NULL)) return fail(env, "[native] bad engine or commands");
  double length = whole(env, given[2], (double)room);
  if (length < 0) return fail(env, "[native] bad number of cells");
  return run_batch(env, e, cells, (size_t)length);
}

/*
 * (): runs what was written to the cells of an engine, the first of which says how many follow: arguments would take as long as a small kernel.
 * Its data is the engine's slot, which lives as long as the functions of the addon.
 */
static napi_value submit_given(napi_env env, napi_callback_info info) {
  void *place;
  if (napi_get_cb_info(env, info, NULL, NULL, NULL, &place) != napi_ok) return fail(env, "[native] bad engine or commands");
  struct engine *e = *(struct engine **)place;
  if (e == NULL || e->given == NULL) return fail(env, "[native] bad engine or commands");
  double cells = e->given[0];
  if (!is_whole(cells, (double)(int64_t)e->given_room - 1)) return fail(env, "[native] bad number of cells");
  return run_batch(env, e, e->given + 1, (size_t)(int64_t)cells);
}

/* submitter(engine, cells: Float64Array): the function that runs batches written there, behind their number of cells */
static napi_value submitter(napi_env env, napi_callback_info info) {
  ARGUMENTS(2);
  struct engine *e = engine_of(env, given[0]);
  void *cells;
  size_t room;
  napi_value buffer, out;
  if (e == NULL || !typed(env, given[1], napi_float64_array, &cells, &room, &buffer) || !stays(env, buffer) || room < 1)
    return fail(env, "[native] bad engine, or cells that are no Float64Array on a SharedArrayBuffer");
  struct instance *all = instance_of(env);
  int id = 0;
  while (all->engines[id] != e) id++;
  napi_ref held;
  if (napi_create_reference(env, buffer, 1, &held) != napi_ok) return fail(env, "[native] no memory for commands");
  if (e->given_buffer != NULL) napi_delete_reference(env, e->given_buffer);
  e->given_buffer = held;
  e->given = cells;
  e->given_room = room;
  if (napi_create_function(env, "submit", NAPI_AUTO_LENGTH, submit_given, &all->engines[id], &out) != napi_ok)
    return fail(env, "[native] no memory for commands");
  return out;
}

static napi_value dispose(napi_env env, napi_callback_info info) {
  ARGUMENTS(1);
  struct instance *all = instance_of(env);
  double id = whole(env, given[0], most_engines - 1);
  if (id < 0 || all->engines[(int)id] == NULL) return NULL;
  free_engine(env, all->engines[(int)id]);
  all->engines[(int)id] = NULL;
  return NULL;
}

#ifdef POLYGRAD_FAULTS
/* closePages(engine, offset, bytes, closed: 0 or 1) */
static napi_value close_some(napi_env env, napi_callback_info info) {
  ARGUMENTS(4);
  struct engine *e = engine_of(env, given[0]);
  double offset = whole(env, given[1], 9e15), bytes = whole(env, given[2], 9e15), closed = whole(env, given[3], 1);
  if (e == NULL || closed < 0 || !inside(e, offset, bytes) || close_pages(e->base + (size_t)offset, (size_t)bytes, (int)closed) != 0)
    return fail(env, "[native] no such pages");
  return NULL;
}
#endif

static napi_value start(napi_env env, napi_value exports) {
  struct instance *all = calloc(1, sizeof *all);
  if (all == NULL || napi_set_instance_data(env, all, free_instance, NULL) != napi_ok) {
    free(all);
    return fail(env, "[native] no memory for the addon");
  }
  const struct {
    const char *name;
    napi_callback function;
  } functions[] = {{"features", features}, {"create", create}, {"resize", resize}, {"compile", compile},
#ifdef POLYGRAD_FAULTS
                   {"closePages", close_some},
#endif
                   {"release", release},   {"submit", submit}, {"submitter", submitter}, {"dispose", dispose}};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    napi_value f;
    napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].function, NULL, &f);
    napi_set_named_property(env, exports, functions[i].name, f);
  }
  return exports;
}

NAPI_MODULE_INIT() { return start(env, exports); }
