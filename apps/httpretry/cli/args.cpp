#include "cli/args.hpp"

#include "cli/text.hpp"
#include "lib/core/base/text.hpp"

#include <httpretry/json/problem.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace httpretry::cli {
namespace {

// Parser applies a command line to a table of flags.
class Parser {
 public:
  using Operand = std::function<void(const std::string&)>;

  Parser(const std::vector<std::string>& args, const FlagTable& table, const Operand& operand,
         const AboutUnknown& about_unknown)
      : args_(args), table_(table), operand_(operand), about_unknown_(about_unknown) {}

  // Passes each argument to its flag, or to the operand function. After "--", all are operands, and
  // so is "-", which stands for standard input or output.
  void run() {
    bool only_operands = false;
    while (next_ < args_.size()) {
      const auto& arg = args_[next_++];  // a flag may take the argument after it as its value
      if (only_operands || arg.size() < 2 || arg.front() != '-') {
        operand_(arg);
      } else if (arg == "--") {
        only_operands = true;
      } else if (arg.starts_with("--")) {
        long_flag(arg);
      } else {
        short_flags(arg);
      }
    }
  }

 private:
  template <class Matches>
  const Flag* find(Matches matches) const {
    for (const auto& group : table_) {
      for (const auto& flag : group.flags) {
        if (matches(flag)) return &flag;
      }
    }
    return nullptr;
  }

  // Returns the switch NAME for "no-NAME", or nullptr if there is no such switch.
  [[nodiscard]] const Switch* switch_negated_by(std::string_view name) const {
    if (!name.starts_with("no-")) return nullptr;
    const auto* flag = find([&](const Flag& known) { return known.name == name.substr(3); });
    return flag == nullptr ? nullptr : flag->apply.target<Switch>();
  }

  // Applies "--name", "--name=value", or "--name" with the next argument as its value. "--no-name"
  // does the opposite of "--name" if that flag is a switch. A flag with an optional value, such as
  // --otlp, accepts it only after "=". Throws UsageError for any other combination.
  void long_flag(const std::string& arg) {
    const auto equals = arg.find('=');
    const bool has_value = equals != std::string::npos;
    const auto name = arg.substr(2, has_value ? equals - 2 : std::string::npos);
    const auto value = has_value ? arg.substr(equals + 1) : std::string();
    const auto shown = "--" + name;  // in messages
    const auto* flag = find([&](const Flag& known) { return known.name == name; });
    if (flag == nullptr) {
      const auto* negated = switch_negated_by(name);
      if (negated == nullptr) {
        throw unknown(shown, has_value ? value : next_argument(), /*within=*/"",
                      did_you_mean_flag(name));
      }
      if (has_value) throw UsageError("option " + shown + " takes no value");
      *negated->target = !negated->value;
      return;
    }
    const bool has_optional_value = !flag->takes_value() && !flag->value.empty();
    if (flag->takes_value()) {
      check_and_apply(*flag, has_value ? value : value_after(shown));
    } else if (!has_value) {
      flag->apply({});
    } else if (!has_optional_value) {
      throw UsageError("option " + shown + " takes no value");
    } else if (value.empty()) {
      throw UsageError("option " + shown + "= needs a value after the \"=\"");
    } else {
      flag->apply(value);
    }
  }

  // Applies the flags of one argument: "-sSL" is three flags; "-XPOST" is one with its value. In
  // "-X POST", the value is the next argument. Throws UsageError at the first unknown letter.
  void short_flags(const std::string& arg) {
    for (std::size_t i = 1; i < arg.size(); ++i) {
      const auto* flag = find([&](const Flag& known) { return known.letter == arg[i]; });
      const std::string shown{'-', arg[i]};  // in messages
      const auto rest = arg.substr(i + 1);   // the value, or further letters
      if (flag == nullptr) {
        const auto within = arg.size() > 2 ? " (in " + arg + ")" : std::string();
        // Three letters or more may be a long flag with a single dash, such as "-json".
        const auto hint = arg.size() > 3 ? did_you_mean_flag(arg.substr(1)) : std::string();
        throw unknown(shown, rest.empty() ? next_argument() : rest, within, hint);
      }
      if (flag->takes_value())
        return check_and_apply(*flag, rest.empty() ? value_after(shown) : rest);
      flag->apply({});
    }
  }

  // Returns the error for a flag that is not in the table. `value` is the text after it, `within`
  // is the argument that contains it, for a message, and `hint` suggests another flag; each may be
  // "".
  [[nodiscard]] UsageError unknown(const std::string& shown, const std::string& value,
                                   const std::string& within, const std::string& hint) const {
    const auto about = about_unknown_ ? about_unknown_(shown, value) : std::string();
    if (!about.empty()) return UsageError("option " + shown + within + about);
    return UsageError("option " + shown + " is unknown" + within + hint);
  }

  [[nodiscard]] std::string next_argument() const {
    return next_ < args_.size() ? args_[next_] : std::string();
  }

  std::string value_after(const std::string& shown) {
    if (next_ == args_.size()) throw UsageError("option " + shown + " needs a value");
    return args_[next_++];
  }

  // Applies a flag to its value. Throws UsageError if the flag does not allow the value.
  static void check_and_apply(const Flag& flag, const std::string& value) {
    if (value.empty() && !flag.may_be_empty) {
      throw UsageError("option --" + std::string(flag.name) + " needs a value that is not empty");
    }
    const auto choices = flag.choices();
    if (!choices.empty() && std::find(choices.begin(), choices.end(), value) == choices.end()) {
      throw UsageError("option --" + std::string(flag.name) + ": \"" + value + "\" is not one of " +
                       join(choices, ", "));
    }
    flag.apply(value);
  }

  [[nodiscard]] std::string did_you_mean_flag(const std::string& name) const {
    std::vector<std::string_view> names;
    for (const auto& group : table_) {
      for (const auto& flag : group.flags) names.push_back(flag.name);
    }
    const auto near = nearest(name, names);
    return near.empty() ? "" : "; did you mean --" + std::string(near) + "?";
  }

  const std::vector<std::string>& args_;
  const FlagTable& table_;
  const Operand& operand_;
  const AboutUnknown& about_unknown_;
  std::size_t next_ = 0;
};

UsageError invalid(std::string_view flag, const std::string& text, const std::string& expected) {
  return UsageError("option " + std::string(flag) + ": \"" + text + "\" is not " + expected);
}

// Returns the decimal number at the start of `text`, or NaN. `rest` receives the text after it.
double decimal_in(const std::string& text, std::string_view& rest) {
  double number = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  rest = {stop, static_cast<std::size_t>(end - stop)};
  return code == std::errc() ? number : std::numeric_limits<double>::quiet_NaN();
}

// Parses a number from 0 to `most`, optionally followed by `unit`.
double decimal_up_to(double most, std::string_view unit, const std::string& text,
                     std::string_view flag, const char* expected) {
  std::string_view rest;
  const auto number = decimal_in(text, rest);
  if ((rest.empty() || rest == unit) && number >= 0 && number <= most) return number;
  throw invalid(flag, text, expected);
}

// Returns the length of a unit in seconds, or NaN if it is not a unit. A number without a unit is
// in seconds.
double seconds_of(std::string_view unit) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"", 1},  {"us", 1e-6}, {"ms", 1e-3},
                                                            {"s", 1}, {"m", 60},    {"h", 3600}};
  for (const auto& [name, size] : kUnits) {
    if (name == unit) return size;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::vector<std::string> Flag::choices() const {
  std::vector<std::string> words;
  if (value.find('|') == std::string_view::npos) return words;
  for (auto rest = value; !rest.empty();) words.emplace_back(take_until(rest, '|'));
  return words;
}

Flag help_flag() {
  return {
      'h', "help", "",
      "show this help, or only the part about a topic, such as an option or the title of a group",
      [](const std::string&) { throw HelpRequested(); }};
}

std::vector<Flag> joined(std::vector<Flag> flags, const std::vector<Flag>& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

FlagTable help_only() { return {{"Options", {help_flag()}}}; }

void parse(const std::vector<std::string>& args, const FlagTable& table,
           const std::function<void(const std::string&)>& operand,
           const AboutUnknown& about_unknown) {
  Parser(args, table, operand, about_unknown).run();
}

std::vector<std::string> parse(const std::vector<std::string>& args, const FlagTable& table,
                               const AboutUnknown& about_unknown) {
  std::vector<std::string> operands;
  parse(
      args, table, [&](const std::string& operand) { operands.push_back(operand); }, about_unknown);
  return operands;
}

Duration parse_seconds(const std::string& text, std::string_view flag) {
  constexpr double kMost = 365.0 * 86400;  // as in a policy file
  std::string_view unit;
  const auto number = decimal_in(text, unit);
  const auto seconds = number * seconds_of(unit);
  // The negation also rejects NaN.
  if (!(seconds >= 0 && seconds <= kMost)) {
    throw invalid(flag, text, "a number of seconds from 0 to a year, such as 5, 0.5 or 500ms");
  }
  return Duration(std::llround(seconds * 1e9));
}

double parse_unit(const std::string& text, std::string_view flag) {
  return decimal_up_to(1, "", text, flag, "a number from 0 to 1");
}

double parse_per_second(const std::string& text, std::string_view flag) {
  return decimal_up_to(1e9, "/s", text, flag, "a number of calls per second");
}

long parse_count(const std::string& text, std::string_view flag) {
  const auto number = to_number<int>(text);
  if (!number || *number < 0) throw invalid(flag, text, "a whole number");
  return *number;
}

std::uint64_t parse_bytes(const std::string& text, std::string_view flag) {
  constexpr std::string_view kUnits = "bkmgt";  // powers of 1024, as for curl
  const auto digits = text.substr(0, text.find_first_not_of("0123456789"));
  const auto suffix = text.substr(digits.size());
  const auto number = to_number<std::uint64_t>(digits);
  const auto unit = kUnits.find(suffix.empty() ? 'b' : to_lower(suffix.front()));
  const bool valid = number && suffix.size() <= 1 && unit != std::string_view::npos;
  const auto shift = valid ? 10 * unit : 0;
  // The result must fit into 63 bits, because it may be converted to a signed size.
  if (!valid || *number > (std::numeric_limits<std::uint64_t>::max() >> shift >> 1U)) {
    throw invalid(flag, text, "a number of bytes, such as 500, 20K or 3M");
  }
  return *number << shift;
}

}  // namespace httpretry::cli
