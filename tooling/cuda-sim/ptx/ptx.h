/**
 * An interpreter of the PTX that @polygrad/emit-ptx writes: text in, a module; a module, memory and a grid in, what the kernel does to memory.
 *
 * Device addresses are addresses of the host: whoever runs a kernel says which ranges it may touch. Nothing here is thread-safe for one
 * module while it is parsed; several threads may run entries of one module at once.
 */
#ifndef POLYGRAD_PTX_H
#define POLYGRAD_PTX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ptx_module ptx_module;
typedef struct ptx_entry ptx_entry;

/** A range of addresses that a kernel may touch. */
typedef struct ptx_range {
  uint64_t start;
  uint64_t bytes;
} ptx_range;

/** What one instruction of an entry did, over all warps: see counts.cc. */
typedef struct ptx_count {
  /** Times a warp ran it, and the lanes that took part. */
  uint64_t warps;
  uint64_t lanes;
  /** Of accesses: 'g' device memory, 's' shared memory; bytes of a lane; and what the memory did: sectors of 32 bytes, or turns of the banks. */
  char space;
  uint32_t bytes;
  uint64_t done;
  /** The least that could be with as many different bytes. */
  uint64_t least;
} ptx_count;

/** What a kernel may touch, and what is checked. */
typedef struct ptx_memory {
  /** In rising order of `start`, without overlaps. */
  const ptx_range *ranges;
  size_t count;
  /** Not 0: two threads of a group that touch the same shared byte between two barriers, one of them writing, are a fault. */
  int check_races;
  /** NULL, or one for each instruction of the entry (`ptx_instruction_count`): what it did is added there. */
  ptx_count *counts;
} ptx_memory;

/** A module, or NULL with "line N: what is wrong" in `log`. Text outside of the subset is refused. */
ptx_module *ptx_parse(const char *text, char *log, size_t log_bytes);
void ptx_free(ptx_module *module);

/** An entry by its name, or NULL. It lives as long as its module. */
const ptx_entry *ptx_find(const ptx_module *module, const char *name);

/** What `.target` says: 75 for sm_75. */
unsigned ptx_target(const ptx_module *module);

/** What `.version` says: 70 for 7.0. */
unsigned ptx_version(const ptx_module *module);

/** How many parameters an entry has, and the bytes and place of each in the block of parameters. */
size_t ptx_parameter_count(const ptx_entry *entry);
size_t ptx_parameter_size(const ptx_entry *entry, size_t index);
size_t ptx_parameter_offset(const ptx_entry *entry, size_t index);

/** How many instructions an entry has, and the text of each. */
size_t ptx_instruction_count(const ptx_entry *entry);
const char *ptx_instruction_text(const ptx_entry *entry, size_t index);

/** Bytes of all parameters together. */
size_t ptx_parameter_bytes(const ptx_entry *entry);

/** Bytes of shared memory declared with a length; `.extern` memory comes on top when the kernel is run. */
size_t ptx_shared_bytes(const ptx_entry *entry);

/** Threads in a group that `.maxntid` or `.reqntid` allows; 0 where there is neither. */
unsigned ptx_max_threads(const ptx_entry *entry);

/**
 * Runs a kernel: 0, or 1 with the fault in `fault` (line, instruction, block, thread, and the address out of range, the race, or the
 * barrier that not all threads reach). `parameters` has `ptx_parameter_bytes` bytes, each parameter at its offset.
 */
int ptx_run(const ptx_entry *entry, const unsigned grid[3], const unsigned block[3], size_t dynamic_shared_bytes,
            const void *parameters, const ptx_memory *memory, char *fault, size_t fault_bytes);

#ifdef __cplusplus
}
#endif

#endif
