/** Operands of an instruction as they are written: words, literals, vectors, addresses. What they name is for the reader to find. */
#pragma once

#include <vector>

#include "scan.h"

namespace ptx {

struct Operand {
  enum Type { word, literal, vector, address } type = word;
  /** A register, label or symbol; of an address its base. */
  std::string text;
  std::vector<Operand> parts;
  uint64_t bits = 0;
  /** 32 or 64 of a float literal; 0 of an integer. */
  unsigned float_bits = 0;
  int64_t offset = 0;
};

class OperandScanner : public Scanner {
 public:
  using Scanner::Scanner;

 protected:
  Operand operand() {
    Operand made;
    skip();
    if (take('{')) {
      made.type = Operand::vector;
      do made.parts.push_back(operand());
      while (take(','));
      expect('}');
      return made;
    }
    if (take('[')) {
      made.type = Operand::address;
      made.text = word();
      if (take('+')) {
        const bool negative = take('-');
        const uint64_t by = number();
        made.offset = negative ? -int64_t(by) : int64_t(by);
      }
      expect(']');
      return made;
    }
    const bool negative = take('-');
    const std::string text = word();
    made.text = text;
    if (!std::isdigit(static_cast<unsigned char>(text[0]))) {
      if (negative) refuse("a number is expected behind -");
      return made;
    }
    made.type = Operand::literal;
    char *end = nullptr;
    if (text.rfind("0f", 0) == 0 || text.rfind("0d", 0) == 0) {
      made.float_bits = text[1] == 'f' ? 32 : 64;
      if (text.size() != 2 + made.float_bits / 4) refuse("a float literal has 8 or 16 digits: " + text);
      made.bits = std::strtoull(text.c_str() + 2, &end, 16);
    } else {
      made.bits = std::strtoull(text.c_str(), &end, 0);
      if (*end == 'U') end++;
    }
    if (*end != 0) refuse("no number: " + text);
    if (negative) made.bits = 0 - made.bits;
    return made;
  }
};

}  // namespace ptx
