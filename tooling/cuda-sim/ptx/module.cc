/** What a module and its entries are asked for once the text is read (ptx.h). */
#include "program.h"

void ptx_free(ptx_module *module) { delete module; }

const ptx_entry *ptx_find(const ptx_module *module, const char *name) {
  const auto found = module->entries.find(name);
  return found == module->entries.end() ? nullptr : &found->second;
}

size_t ptx_instruction_count(const ptx_entry *entry) { return entry->code.size(); }
const char *ptx_instruction_text(const ptx_entry *entry, size_t index) { return entry->texts.at(index).c_str(); }
unsigned ptx_target(const ptx_module *module) { return module->target; }
unsigned ptx_version(const ptx_module *module) { return module->version; }
size_t ptx_parameter_count(const ptx_entry *entry) { return entry->parameters.size(); }
size_t ptx_parameter_size(const ptx_entry *entry, size_t index) { return entry->parameters.at(index).bytes; }
size_t ptx_parameter_offset(const ptx_entry *entry, size_t index) { return entry->parameters.at(index).offset; }
size_t ptx_parameter_bytes(const ptx_entry *entry) { return entry->parameter_bytes; }
size_t ptx_shared_bytes(const ptx_entry *entry) { return entry->shared_bytes; }
unsigned ptx_max_threads(const ptx_entry *entry) { return entry->max_threads; }
