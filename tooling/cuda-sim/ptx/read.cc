/** PTX text to instructions. What is not in the table of forms is refused, with its line. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "program.h"
#include "operands.h"

namespace ptx {
namespace {

const Forms &all_forms() {
  static const Forms forms = [] {
    Forms made;
    add_arithmetic(made);
    add_conversions(made);
    add_accesses(made);
    add_exchanges(made);
    add_matrices(made);
    made["bra"] = {nullptr, "L", Kind::branch};
    made["bar.sync"] = {nullptr, "B", Kind::barrier};
    made["bar.sync 2"] = {nullptr, "IR", Kind::barrier};
    made["bar.warp.sync"] = {nullptr, "V", Kind::warp_barrier};
    made["ret"] = {nullptr, "", Kind::stop};
    return made;
  }();
  return forms;
}

/** Registers declared together. */
struct Declared {
  char letter;
  uint32_t first;
  uint32_t count;
};

unsigned bytes_of(char letter) { return letter == 'h' ? 2 : letter == 'w' ? 4 : 8; }

/** Literal predicates: false and true. */
constexpr uint32_t literal_predicates = 2;

class Reader : private OperandScanner {
 public:
  Reader(const char *text, ptx_module &module) : OperandScanner(text), module_(module) {}

  void read() {
    for (skip(); *at_ != 0; skip()) directive();
  }

  using Scanner::line;

 private:
  ptx_module &module_;
  std::string dynamic_name_;

  ptx_entry *entry_ = nullptr;
  std::map<std::string, Declared> registers_;
  std::map<std::string, uint32_t> labels_;
  std::map<std::string, size_t> shared_;
  std::map<std::pair<unsigned, uint64_t>, uint32_t> literals_;
  std::map<std::string, uint32_t> specials_;
  struct Jump {
    size_t from;
    std::string label;
    unsigned line;
  };
  std::vector<Jump> jumps_;

  // --- the module

  void directive() {
    const std::string name = word();
    if (name == ".version") {
      const std::string version = word();
      const size_t dot = version.find('.');
      if (dot == std::string::npos) refuse("a version is two numbers: got " + version);
      module_.version = unsigned(std::atoi(version.c_str())) * 10 + unsigned(std::atoi(version.c_str() + dot + 1));
    } else if (name == ".target") {
      const std::string target = word();
      if (target.rfind("sm_", 0) != 0) refuse("no target: " + target);
      module_.target = unsigned(std::atoi(target.c_str() + 3));
    } else if (name == ".address_size") {
      if (number() != 64) refuse("addresses have 64 bits");
    } else if (name == ".extern") {
      if (word() != ".shared") refuse(".extern is for shared memory");
      dynamic_name_ = memory_name();
      expect('[');
      expect(']');
      expect(';');
    } else if (name == ".visible") {
      if (word() != ".entry") refuse("an entry is expected");
      entry();
    } else if (name == ".entry") {
      entry();
    } else {
      refuse("unknown directive " + name);
    }
  }

  /** .align N .b8 name */
  std::string memory_name() {
    if (word() != ".align") refuse(".align is expected");
    number();
    if (word() != ".b8") refuse("memory is declared in bytes");
    return word();
  }

  static unsigned type_bytes(const std::string &type) {
    const std::string digits = type.size() > 2 ? type.substr(2) : "";
    const int bits = std::atoi(digits.c_str());
    return bits == 8 || bits == 16 || bits == 32 || bits == 64 ? unsigned(bits) / 8 : 0;
  }

  void entry() {
    ptx_entry made;
    made.name = word();
    entry_ = &made;
    registers_.clear();
    labels_.clear();
    shared_.clear();
    literals_.clear();
    specials_.clear();
    jumps_.clear();
    made.predicates = literal_predicates;
    expect('(');
    while (!take(')')) {
      if (!made.parameters.empty()) expect(',');
      parameter();
    }
    for (skip(); *at_ == '.'; skip()) {
      const std::string name = word();
      if (name == ".minnctapersm") {
        number();
        continue;
      }
      if (name != ".reqntid" && name != ".maxntid") refuse("unknown directive " + name);
      made.max_threads = 1;
      do made.max_threads *= unsigned(number());
      while (take(','));
    }
    expect('{');
    while (!take('}')) statement();
    for (const Jump &jump : jumps_) {
      const auto found = labels_.find(jump.label);
      line_ = jump.line;
      if (found == labels_.end()) refuse("no label " + jump.label);
      made.code[jump.from].target = found->second;
    }
    if (made.code.empty() || made.code.back().kind != Kind::stop || made.code.back().predicate >= 0)
      refuse("the entry does not end with ret");
    if (!module_.entries.emplace(made.name, made).second) refuse("two entries have the name " + made.name);
    entry_ = nullptr;
  }

  void parameter() {
    if (word() != ".param") refuse(".param is expected");
    const std::string type = word();
    const unsigned bytes = type_bytes(type);
    if (bytes == 0) refuse("unknown type " + type);
    std::string name = word();
    if (name == ".ptr") {
      if (word() != ".global" || word() != ".align") refuse(".global .align is expected");
      number();
      name = word();
    }
    const size_t offset = (entry_->parameter_bytes + bytes - 1) / bytes * bytes;
    entry_->parameter_numbers[name] = entry_->parameters.size();
    entry_->parameters.push_back({bytes, offset});
    entry_->parameter_bytes = offset + bytes;
  }

  // --- the body

  void statement() {
    skip();
    if (*at_ == '.') {
      declaration();
      return;
    }
    const unsigned line = line_;
    const char *from = at_;
    int32_t predicate = -1;
    bool negated = false;
    if (take('@')) {
      negated = take('!');
      predicate = int32_t(register_at(word(), 'p'));
    }
    const std::string name = word();
    if (take(':')) {
      if (!labels_.emplace(name, uint32_t(entry_->code.size())).second) refuse("two labels " + name);
      return;
    }
    std::vector<Operand> operands;
    if (!take(';')) {
      do operands.push_back(operand());
      while (take(','));
      expect(';');
    }
    const std::string text(from, at_);
    const unsigned after = line_;
    line_ = line;
    Instruction made = instruction(name, operands);
    made.predicate = predicate;
    made.negated = negated;
    made.line = line;
    line_ = after;
    entry_->code.push_back(made);
    entry_->texts.push_back(text);
  }

  void declaration() {
    const std::string name = word();
    if (name == ".pragma") {
      expect('"');
      while (*at_ != '"' && *at_ != 0) at_++;
      expect('"');
    } else if (name == ".shared") {
      const std::string title = memory_name();
      expect('[');
      const uint64_t bytes = number();
      expect(']');
      entry_->shared_bytes = (entry_->shared_bytes + 15) / 16 * 16;
      shared_[title] = entry_->shared_bytes;
      entry_->shared_bytes += bytes;
    } else if (name == ".reg") {
      const std::string type = word();
      const unsigned bytes = type == ".pred" ? 0 : type_bytes(type);
      if (type != ".pred" && bytes < 2) refuse("unknown type " + type);
      const std::string title = word();
      expect('<');
      const uint32_t count = uint32_t(number());
      expect('>');
      if (bytes == 0) {
        registers_[title] = {'p', entry_->predicates, count};
        entry_->predicates += count;
      } else {
        registers_[title] = {bytes == 2 ? 'h' : bytes == 4 ? 'w' : 'q', entry_->file_bytes, count};
        entry_->file_bytes += count * bytes * lanes;
      }
    } else {
      refuse("unknown directive " + name);
    }
    expect(';');
  }

  /** The place of a declared register, which must be of that size. */
  uint32_t register_at(const std::string &name, char letter) const {
    size_t digits = name.size();
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1]))) digits--;
    const auto found = registers_.find(name.substr(0, digits));
    if (found == registers_.end() || digits == name.size()) refuse("no register " + name);
    const uint32_t number = uint32_t(std::atoi(name.c_str() + digits));
    const Declared &declared = found->second;
    if (number >= declared.count) refuse("no register " + name + " among " + std::to_string(declared.count));
    if (declared.letter != letter) refuse("register " + name + " has another size than the instruction");
    return letter == 'p' ? declared.first + number : declared.first + number * bytes_of(letter) * lanes;
  }

  char letter_of(const Operand &o) const {
    size_t digits = o.text.size();
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(o.text[digits - 1]))) digits--;
    const auto found = registers_.find(o.text.substr(0, digits));
    return found == registers_.end() ? '?' : found->second.letter;
  }

  uint32_t literal_at(unsigned bytes, uint64_t bits) {
    const uint64_t cut = bytes == 8 ? bits : bits & ((uint64_t(1) << 8 * bytes) - 1);
    const auto made = literals_.emplace(std::make_pair(bytes, cut), entry_->file_bytes);
    if (made.second) {
      entry_->literals.push_back({entry_->file_bytes, bytes, cut});
      entry_->file_bytes += bytes * lanes;
    }
    return made.first->second;
  }

  uint32_t special_at(const std::string &name) {
    static const std::map<std::string, Special::Name> names = {
        {"%tid", Special::tid}, {"%ctaid", Special::ctaid}, {"%ntid", Special::ntid}, {"%nctaid", Special::nctaid}};
    const auto known = specials_.find(name);
    if (known != specials_.end()) return known->second;
    Special made{Special::laneid, 0, entry_->file_bytes};
    if (name != "%laneid") {
      const size_t dot = name.find('.');
      const auto found = names.find(name.substr(0, dot));
      if (found == names.end() || dot + 2 != name.size() || name[dot + 1] < 'x' || name[dot + 1] > 'z')
        refuse("no register " + name);
      made.name = found->second;
      made.axis = unsigned(name[dot + 1] - 'x');
    }
    entry_->specials.push_back(made);
    specials_[name] = made.at;
    entry_->file_bytes += 4 * lanes;
    return made.at;
  }

  static bool is_special(const std::string &name) {
    return name == "%laneid" || (name[0] == '%' && name.find('.') != std::string::npos);
  }

  /** Where shared memory with a name lies; memory without a length begins behind all with one. */
  bool find_shared(const std::string &name, int64_t &offset) const {
    const auto found = shared_.find(name);
    if (found != shared_.end()) {
      offset = int64_t(found->second);
      return true;
    }
    if (name != dynamic_name_ || name.empty()) return false;
    offset = int64_t((entry_->shared_bytes + 15) / 16 * 16);
    return true;
  }

  uint32_t source(const Operand &o, char letter) {
    if (letter == 'p') {
      if (o.type != Operand::literal) return register_at(o.text, 'p');
      if (o.float_bits != 0 || o.bits > 1) refuse("a predicate is 0 or 1");
      return uint32_t(o.bits);
    }
    if (o.type == Operand::literal) {
      if (o.float_bits != 0 && o.float_bits != 8 * bytes_of(letter)) refuse("a literal of another size: " + o.text);
      return literal_at(bytes_of(letter), o.bits);
    }
    if (o.type != Operand::word) refuse("a register or number is expected");
    if (is_special(o.text)) {
      if (letter != 'w') refuse(o.text + " has 32 bits");
      return special_at(o.text);
    }
    int64_t offset = 0;
    if (letter == 'w' && find_shared(o.text, offset)) return literal_at(4, uint64_t(offset));
    return register_at(o.text, letter);
  }

  void address(Instruction &made, const Operand &o, char space) {
    if (o.type != Operand::address) refuse("an address is expected");
    made.offset = o.offset;
    made.target = entry_->accesses++;
    int64_t start = 0;
    if (space == 'S' && find_shared(o.text, start)) {
      made.a = literal_at(4, 0);
      made.offset += start;
    } else {
      made.a = register_at(o.text, space == 'S' ? 'w' : 'q');
    }
  }

  void parameter_place(Instruction &made, const Operand &o, char letter) {
    const auto found = entry_->parameter_numbers.find(o.text);
    if (o.type != Operand::address || found == entry_->parameter_numbers.end()) refuse("no parameter " + o.text);
    const Parameter &p = entry_->parameters[found->second];
    made.offset = int64_t(p.offset) + o.offset;
    if (o.offset != 0 || (letter == 'q') != (p.bytes == 8)) refuse("parameter " + o.text + " has another size");
  }

  /** Bytes of a lane of an access, by its name; of lines of matrices how many matrices. */
  static uint32_t access_bytes(const std::string &name) {
    if (name.rfind("ldmatrix", 0) == 0) return uint32_t(name[name.find(".x") + 2] - '0');
    const size_t bits = name.find_last_not_of("0123456789") + 1;
    const size_t vector = name.find(".v");
    const uint32_t lanes_of = vector == std::string::npos ? 1 : uint32_t(name[vector + 2] - '0');
    return lanes_of * uint32_t(std::stoul(name.substr(bits))) / 8;
  }

  static size_t operand_count(const std::string &form) {
    size_t count = 0;
    for (const char c : form) count += !std::isdigit(static_cast<unsigned char>(c));
    return count;
  }

  Instruction instruction(const std::string &name, const std::vector<Operand> &operands) {
    const Forms &forms = all_forms();
    auto found = forms.find(name);
    if (name == "mov.b32" && operands.size() == 2 && operands[1].type == Operand::vector) found = forms.find(name + " {}");
    if (name == "mov.b32" && operands.size() == 2 && operands[0].type == Operand::vector) found = forms.find("mov.b32 {}=");
    if (name.rfind("cp.async.c", 0) == 0 && operands.size() == 4) found = forms.find(name + " 4");
    if (name == "bar.sync" && operands.size() == 2) found = forms.find("bar.sync 2");
    if (name == "cvt.s32.s16" && operands.size() == 2) found = forms.find(name + " " + letter_of(operands[1]));
    if (found == forms.end()) refuse("unknown instruction " + name);
    const Form &form = found->second;
    if (operand_count(form.operands) != operands.size()) refuse(name + " has another number of operands");
    Instruction made;
    made.run = form.run;
    made.kind = form.kind;
    uint32_t *slots[] = {&made.d, &made.a, &made.b, &made.c};
    unsigned slot = 0;
    size_t number = 0;
    for (size_t i = 0; i < form.operands.size(); i++) {
      char letter = form.operands[i];
      const Operand &o = operands[number];
      switch (letter) {
        case 'L':
          if (o.type != Operand::word) refuse("a label is expected");
          jumps_.push_back({entry_->code.size(), o.text, line_});
          break;
        case 'B':
          if (o.type != Operand::literal || o.bits != 0) refuse("the barrier of all threads is number 0");
          break;
        case 'I':
          made.a = source(o, 'w');
          break;
        case 'R':
          if (o.type != Operand::literal || o.bits == 0 || o.bits % lanes != 0 || o.bits > 1024)
            refuse("threads at a barrier are whole warps: a multiple of 32 up to 1024");
          made.bytes = uint32_t(o.bits);
          break;
        case 'V':
          if (o.type != Operand::literal || o.bits == 0 || o.bits > all_lanes) refuse("a mask of lanes is expected");
          made.offset = int64_t(o.bits);
          break;
        case 'G':
        case 'S':
          address(made, o, letter);
          made.space = letter == 'G' ? 'g' : 's';
          made.bytes = access_bytes(name);
          if (name.rfind("ldmatrix", 0) == 0) made.space = 'm';
          slot = 2;
          break;
        case 'P':
          parameter_place(made, o, form.operands[0]);
          break;
        case 'M':
          made.vector[0] = source(o, 'w');
          break;
        case 'T': {
          const unsigned count = unsigned(form.operands[++i] - '0');
          if (o.type != Operand::vector || o.parts.size() != count)
            refuse(std::to_string(count) + " registers in braces are expected");
          for (unsigned n = 0; n < count; n++) {
            // What is written is a register; all have 32 bits.
            made.tiles[number][n] = number == 0 ? register_at(o.parts[n].text, 'w') : source(o.parts[n], 'w');
          }
          break;
        }
        case 'N':
          if (o.type != Operand::literal) refuse("a number is expected");
          made.offset = int64_t(o.bits);
          break;
        case 'X':
        case 'K':
          if (o.type != Operand::literal || !(o.bits == 16 || (letter == 'K' && (o.bits == 4 || o.bits == 8))))
            refuse(letter == 'X' ? "copies past the first cache have 16 bytes" : "copies have 4, 8 or 16 bytes");
          made.bytes = uint32_t(o.bits);
          made.space = 'c';
          break;
        case 'C':
          made.c = source(o, 'w');
          break;
        case 'A':
          // Two addresses: shared memory, then device memory.
          if (o.type != Operand::address) refuse("an address is expected");
          if (number == 0) {
            address(made, o, 'S');
          } else {
            made.b = register_at(o.text, 'q');
            made.vector[0] = literal_at(8, uint64_t(o.offset));
          }
          break;
        case 'D':
          if (o.parts.size() != 2) refuse("two registers in braces are expected");
          for (unsigned n = 0; n < 2; n++) made.vector[n] = source(o.parts[n], 'h');
          break;
        case '1':
        case '2':
        case '4': {
          const unsigned count = unsigned(letter - '0');
          letter = form.operands[++i];
          const std::vector<Operand> parts = count == 1 ? std::vector<Operand>{o} : o.parts;
          if (parts.size() != count || (count > 1 && o.type != Operand::vector))
            refuse(std::to_string(count) + " registers are expected");
          for (unsigned n = 0; n < count; n++)
            made.vector[n] = number == 0 ? register_at(parts[n].text, letter) : source(parts[n], letter);
          break;
        }
        default:
          *slots[slot++] = number == 0 ? register_at(o.text, letter) : source(o, letter);
      }
      number++;
    }
    // Lines of matrices have 16 bytes: no unit is larger.
    if (made.kind == Kind::warp_barrier || (made.kind == Kind::barrier && made.bytes != 0)) entry_->in_parts = true;
    if (made.space == 's' || made.space == 'c')
      entry_->unit_shift = std::min(entry_->unit_shift, uint32_t(__builtin_ctz(made.bytes)));
    return made;
  }
};

}  // namespace
}  // namespace ptx

ptx_module *ptx_parse(const char *text, char *log, size_t log_bytes) {
  if (log_bytes > 0) log[0] = 0;
  ptx_module *module = new ptx_module;
  ptx::Reader reader(text, *module);
  try {
    reader.read();
    return module;
  } catch (const ptx::Refused &refused) {
    std::snprintf(log, log_bytes, "line %u: %s", refused.line, refused.what.c_str());
  } catch (const std::exception &error) {
    std::snprintf(log, log_bytes, "line %u: %s", reader.line(), error.what());
  }
  delete module;
  return nullptr;
}
