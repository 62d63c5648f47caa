/** Words and numbers of a PTX text, without its comments, and the line where something is refused. */
#pragma once

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace ptx {

struct Refused {
  unsigned line;
  std::string what;
};

class Scanner {
 public:
  explicit Scanner(const char *text) : at_(text) {}

  unsigned line() const { return line_; }

 protected:
  const char *at_;
  unsigned line_ = 1;

  [[noreturn]] void refuse(const std::string &what) const { throw Refused{line_, what}; }

  void skip() {
    for (;; at_++) {
      if (*at_ == '\n') line_++;
      if (at_[0] == '/' && at_[1] == '/') {
        while (*at_ != 0 && *at_ != '\n') at_++;
        if (*at_ == '\n') line_++;
        if (*at_ == 0) return;
      } else if (at_[0] == '/' && at_[1] == '*') {
        for (at_ += 2; *at_ != 0 && !(at_[0] == '*' && at_[1] == '/'); at_++)
          if (*at_ == '\n') line_++;
        if (*at_ == 0) return;
        at_++;
      } else if (!std::isspace(static_cast<unsigned char>(*at_))) {
        return;
      }
    }
  }

  static bool in_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '%' || c == '$';
  }

  std::string word() {
    skip();
    const char *from = at_;
    while (in_word(*at_)) at_++;
    if (from == at_) refuse(*at_ == 0 ? "the text ends too early" : std::string("a word is expected at '") + *at_ + "'");
    return {from, at_};
  }

  bool take(char c) {
    skip();
    if (*at_ != c) return false;
    at_++;
    return true;
  }

  void expect(char c) {
    if (!take(c)) refuse(std::string("'") + c + "' is expected");
  }

  uint64_t number() {
    const std::string text = word();
    char *end = nullptr;
    const uint64_t value = std::strtoull(text.c_str(), &end, 0);
    if (*end == 'U') end++;
    if (*end != 0) refuse("a number is expected: got " + text);
    return value;
  }
};

}  // namespace ptx
