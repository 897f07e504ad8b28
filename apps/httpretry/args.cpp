#include "args.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

namespace httpretry::cli {
namespace {

constexpr std::size_t kHelpColumn = 32;

class Parser {
 public:
  Parser(const std::vector<std::string>& args, const std::vector<Flag>& flags)
      : args_(args), flags_(flags) {}

  std::vector<std::string> run() {
    while (next_ < args_.size()) {
      const auto& arg = args_[next_++];
      if (arg == "--") {
        rest_.insert(rest_.end(), args_.begin() + static_cast<std::ptrdiff_t>(next_), args_.end());
        break;
      }
      if (arg.starts_with("--")) {
        long_flag(arg);
      } else if (arg.size() > 1 && arg.front() == '-') {
        short_flags(arg);
      } else {
        rest_.push_back(arg);
      }
    }
    return std::move(rest_);
  }

 private:
  void long_flag(const std::string& arg) {
    const auto equals = arg.find('=');
    const auto name = arg.substr(2, equals == std::string::npos ? equals : equals - 2);
    const auto flag = std::find_if(flags_.begin(), flags_.end(),
                                   [&](const Flag& known) { return known.name == name; });
    if (flag == flags_.end()) throw unknown(name);
    const auto shown = "--" + name;
    demand_built(*flag, shown);
    if (flag->takes_value()) {
      flag->apply(equals == std::string::npos ? value_after(shown) : arg.substr(equals + 1));
    } else if (equals == std::string::npos) {
      flag->apply({});
    } else if (flag->value.empty()) {
      throw UsageError("option " + shown + " takes no value");
    } else if (equals + 1 == arg.size()) {
      throw UsageError("option " + shown + " has an empty value");
    } else {
      flag->apply(arg.substr(equals + 1));
    }
  }

  // "-sSL" is three flags; in "-XPOST" the first takes the rest as its value.
  void short_flags(const std::string& arg) {
    for (std::size_t i = 1; i < arg.size(); ++i) {
      const auto flag = std::find_if(flags_.begin(), flags_.end(),
                                     [&](const Flag& known) { return known.letter == arg[i]; });
      const std::string shown{'-', arg[i]};
      if (flag == flags_.end()) {
        const auto within = arg.size() > 2 ? " (in " + arg + ")" : std::string();
        throw UsageError("option " + shown + " is unknown" + within);
      }
      demand_built(*flag, shown);
      if (flag->takes_value()) {
        return flag->apply(i + 1 < arg.size() ? arg.substr(i + 1) : value_after(shown));
      }
      flag->apply({});
    }
  }

  static void demand_built(const Flag& flag, const std::string& shown) {
    if (!flag.apply) throw UsageError("option " + shown + " is not supported yet");
  }

  std::string value_after(const std::string& shown) {
    if (next_ == args_.size()) throw UsageError("option " + shown + " needs a value");
    return args_[next_++];
  }

  [[nodiscard]] UsageError unknown(const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& flag : flags_) names.emplace_back(flag.name);
    const auto near = nearest(name, names);
    const auto hint = near.empty() ? std::string() : "; did you mean --" + near + "?";
    return UsageError("option --" + name + " is unknown" + hint);
  }

  const std::vector<std::string>& args_;
  const std::vector<Flag>& flags_;
  std::size_t next_ = 0;
  std::vector<std::string> rest_;
};

// Levenshtein's, a row at a time.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const auto replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

double parse_number(const std::string& text, std::string_view flag, const char* expected) {
  double number = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (code != std::errc() || stop != end || !std::isfinite(number)) {
    throw UsageError("option " + std::string(flag) + ": \"" + text + "\" is not " + expected);
  }
  return number;
}

}  // namespace

std::vector<std::string> parse(const std::vector<std::string>& args,
                               const std::vector<Flag>& flags) {
  return Parser(args, flags).run();
}

std::string help_lines(const std::vector<Flag>& flags) {
  std::string text;
  for (const auto& flag : flags) {
    if (!flag.apply) continue;
    auto line = flag.letter == '\0' ? std::string("      ") : std::string("  -") + flag.letter;
    if (flag.letter != '\0') line += ", ";
    line += "--" + std::string(flag.name);
    if (flag.takes_value()) line += ' ';
    line += flag.value;
    line += std::string(line.size() < kHelpColumn ? kHelpColumn - line.size() : 1, ' ');
    text += line + std::string(flag.help) + '\n';
  }
  return text;
}

std::string nearest(std::string_view wrong, const std::vector<std::string>& words) {
  std::string best;
  // A third of the letters may be wrong, and two of a short word, for two that are swapped count
  // twice: more is another word.
  const std::size_t few = wrong.size() > 3 ? 2 : 1;
  auto least = std::max(wrong.size() / 3, few) + 1;
  for (const auto& word : words) {
    const auto far = distance(wrong, word);
    if (far >= least) continue;
    least = far;
    best = word;
  }
  return best;
}

Duration parse_seconds(const std::string& text, std::string_view flag) {
  const auto seconds = parse_number(text, flag, "a number of seconds");
  constexpr double kMost = 365.0 * 86400;  // what a policy file allows, too
  if (seconds < 0 || seconds > kMost) {
    throw UsageError("option " + std::string(flag) + ": \"" + text +
                     "\" is not a number of seconds from 0 to a year");
  }
  return Duration(std::llround(seconds * 1e9));
}

long parse_count(const std::string& text, std::string_view flag) {
  int number = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc() || stop != end || number < 0) {
    throw UsageError("option " + std::string(flag) + ": \"" + text + "\" is not a whole number");
  }
  return number;
}

double parse_unit(const std::string& text, std::string_view flag) {
  const auto number = parse_number(text, flag, "a number from 0 to 1");
  if (number < 0 || number > 1) {
    throw UsageError("option " + std::string(flag) + ": \"" + text +
                     "\" is not a number from 0 to 1");
  }
  return number;
}

std::string one_of(const std::string& text, std::string_view flag,
                   const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), text) != words.end()) return text;
  std::string all;
  for (const auto& word : words) all += (all.empty() ? "" : ", ") + word;
  throw UsageError("option " + std::string(flag) + ": \"" + text + "\" is not one of " + all);
}

}  // namespace httpretry::cli
